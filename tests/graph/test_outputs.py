"""The documented shape of the outputs is the one they have."""

from __future__ import annotations

import re
from pathlib import Path

from components.gpu_host import summary

PAGE = Path(__file__).resolve().parents[2] / "docs/outputs.md"
GATE = {"line": "free", "seconds": 0.3, "gpus": [{"index": 0}]}
SERVED = {
    "deployment": "small",
    "gate": GATE,
    "load_seconds": 2.0,
    "tokens_per_second": 60.1,
    "down_seconds": 3.0,
    "environment": ["NCCL_PROTO"],
    "environment_faults": ["NCCL_ALGO is not set"],
    "doubt": "slow",
}


def test_every_field_is_documented_and_every_documented_field_is_there() -> None:
    documented = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.M)
    assert sorted(documented) == sorted(summary(SERVED, {}, "http://box.invalid:8000"))


def test_what_was_not_measured_is_left_out() -> None:
    bare = summary({"deployment": "small"}, {}, "http://box.invalid:8000")
    assert bare == {"serves": "small", "url": "http://box.invalid:8000"}
