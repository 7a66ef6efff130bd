"""The comparisons themselves work; what they find is not judged here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.stack import ROOT


@pytest.mark.practice_host
def test_a_quick_run_prints_a_table_and_writes_figures_with_what_the_machine_is(
    tmp_path: Path,
) -> None:
    out = tmp_path / "bench.json"
    command = [sys.executable, "dev/bench", "--only", "scans", "--quick", "--out", str(out)]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200)
    assert shown.returncode == 0, shown.stderr
    content = json.loads(out.read_text())
    assert content["machine"]["cores"] > 0 and content["machine"]["memory_gib"] > 0
    holders, facts = content["comparisons"]
    assert (holders["unit"], holders["runs"], list(holders["ratio"])) == ("s", 1, ["fuser"])
    assert holders["ours"] > 0 and holders["others"]["fuser"] > 0
    assert holders["name"] in shown.stdout and facts["name"] in shown.stdout
