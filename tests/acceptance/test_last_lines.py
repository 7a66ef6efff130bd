"""What a person reads at the end of a failed switch, to the letter but for measured figures."""

from __future__ import annotations

import json
import re
from pathlib import Path

from sandbox import Host
from tests.acceptance.stack import MODELS, VLLM, Stack

GOLDEN = Path(__file__).parent / "golden" / "failed-switch.txt"


def test_the_last_lines_of_a_failed_switch_say_all_that_a_person_needs(
    serving: Stack, box: Host
) -> None:
    crash = {"models": {MODELS[VLLM]: {"crash": "loading", "error": "out_of_memory"}}}
    box.write("/etc/practice/engine.json", json.dumps(crash))
    serving.configure(active=VLLM)
    lines = serving.up(fails=True).text.partition("Diagnostics:")[2].splitlines()
    told = [line.removeprefix("    ") for line in lines]
    # In which order the CLI shows the resources' lines is its own business.
    first = next(i for i, line in enumerate(told) if re.match(r"box: \S+ does not serve", line))
    last = next(i for i, line in enumerate(told) if line.startswith("box: next: "))
    text = "\n".join(told[first : last + 1]) + "\n"
    assert re.sub(r"(?<![\w-])\d+(\.\d+)?(?![\w-])", "N", text) == GOLDEN.read_text()
