"""Whatever dies, the host ends with a verified model, or at a named dead end."""

from __future__ import annotations

import json
import os
import re

import pytest

from tests.faults.bench import Bench
from tests.faults.conftest import PARTS
from tests.faults.matrix import FAST, FAULTS, PHASES, REASONS, Row, rows

ALL = os.environ.get("FAULTS") == "all"
CHOSEN = [row for row in rows() if row.real and (ALL or (row.phase, row.fault) in FAST)]


def test_every_fault_and_every_phase_has_its_rows() -> None:
    real = [row for row in rows() if row.real]
    assert {row.fault for row in real} == set(FAULTS)
    assert min(sum(row.phase == phase for row in real) for phase in PHASES) >= 5
    assert {row.expected for row in rows() if not row.real} <= set(REASONS)
    assert {(row.phase, row.fault) for row in real} >= set(FAST)


@pytest.mark.practice_host
@pytest.mark.timeout(900)
@pytest.mark.parametrize("row", CHOSEN, ids=lambda row: row.name)
def test_a_fault_ends_as_stated(bench: Bench, row: Row) -> None:
    result = bench.strike(row)
    PARTS.mkdir(parents=True, exist_ok=True)
    part = PARTS / f"{re.sub('[^a-zA-Z-]+', '-', row.name)}.json"
    part.write_text(json.dumps(result.row))
    assert not result.problems
