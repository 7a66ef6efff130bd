from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import start
from tests.faults.bench import SCALE, Bench
from tests.faults.matrix import rows

ROOT = Path(__file__).resolve().parents[2]
PARTS = ROOT / "build" / "faults"


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
    ran = {(p["phase"], p["fault"]): p for p in map(_read, sorted(PARTS.glob("*.json")))}
    if not ran:
        return
    table = [
        ran.get((row.phase, row.fault))
        or {"phase": row.phase, "fault": row.fault, "expected": row.expected, "ran": False}
        for row in rows()
    ]
    (ROOT / "build" / "faults.json").write_text(json.dumps({"scale": SCALE, "rows": table}))
    terminalreporter.section(f"faults, times scaled by 1/{SCALE}")
    for row in ran.values():
        terminalreporter.line(
            f"{row['phase']:10} {row['fault']:30} {row['expected']:9} {row['end']:9} "
            f"{row['seconds']:6} s of {row['bound']} s {'pass' if row['passed'] else 'FAIL'}"
        )


def _read(path: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(path.read_text())
    return found
