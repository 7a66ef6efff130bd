from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox import start
from tests.faults.bench import SCALE, Bench
from tests.faults.matrix import Row, rows

ROOT = Path(__file__).resolve().parents[2]
PARTS = ROOT / "build" / "faults"
TABLE = ROOT / "build" / "faults.json"


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A host that serves, for all rows of this worker."""
    with start("box", state=tmp_path_factory.mktemp("hosts")) as host:
        yield Bench(host, tmp_path_factory.mktemp("stack"))


def pytest_sessionstart(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):
        for part in PARTS.glob("*.json"):
            part.unlink()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints the table of the rows that ran, and writes it with the reasons of the others."""
    ran = {(one["phase"], one["fault"]): one for one in map(_read, PARTS.glob("*.json"))}
    if not ran:
        return
    table = [ran.get((row.phase, row.fault)) or _not_run(row) for row in rows()]
    TABLE.write_text(json.dumps({"scale": SCALE, "rows": table}, indent=1))
    terminalreporter.section(f"faults, times scaled by 1/{SCALE}")
    for row in table:
        if "pass" in row:
            terminalreporter.line(
                f"{row['phase']:10} {row['fault']:29} {row['expected'].partition(':')[0]:9}"
                f"{row['seconds']:6} s of {row['bound']} s  {'pass' if row['pass'] else 'FAIL'}"
                f"{'' if row['pass'] else '  ' + row['end']}"
            )


def _not_run(row: Row) -> dict[str, Any]:
    known = {"phase": row.phase, "fault": row.fault}
    return {**known, "expected": row.expected} if row.real else {**known, "reason": row.expected}


def _read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text()))
