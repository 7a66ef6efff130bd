"""The documented shape of the outputs is the one they have."""

from __future__ import annotations

import re
from pathlib import Path

from components.gpu_host import summary
from cutover_agent.moments import ORDER

PAGE = Path(__file__).resolve().parents[2] / "docs/outputs.md"
GATE = {"line": "free", "seconds": 0.3, "gpus": [{"index": 0}]}
SERVED = {
    "deployment": "small",
    "gate": GATE,
    "load_seconds": 2.0,
    "tokens_per_second": 60.1,
    "down_seconds": 3.0,
    "gap_seconds": 0.4,
    "phases": {"gate": 0.3},
    "warm": {"line": "97 % of 540 GB in memory", "percent": 97.2},
    "environment": ["NCCL_PROTO"],
    "environment_faults": ["NCCL_ALGO is not set"],
    "doubt": "slow",
}


def test_every_field_is_documented_and_every_documented_field_is_there() -> None:
    fields, parts = PAGE.read_text().split("The parts of `phases`")
    row = re.compile(r"^\| `(\w+)` \|", re.M)
    assert sorted(row.findall(fields)) == sorted(summary(SERVED, {}, "http://box.invalid:8000"))
    assert row.findall(parts) == ["stage", *ORDER, "commit"]


def test_what_was_not_measured_is_left_out() -> None:
    bare = summary({"deployment": "small"}, {}, "http://box.invalid:8000")
    assert bare == {"serves": "small", "url": "http://box.invalid:8000"}
