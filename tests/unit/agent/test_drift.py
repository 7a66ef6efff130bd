"""What counts as drift, as a table: the host as found in, roots and reasons out."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from cutover_agent.drift import Committed, Found, drifted
from cutover_agent.manifest import AS_WRITTEN, EDITED, MISSING, NOT_WRITTEN, OPEN, Loaded

RUNS = Loaded("active", "running", 40, "i1", "enabled", started=5_000_000, outdated=False)
DOWN = Loaded("inactive", "dead", 0, "", "disabled", started=0, outdated=False)
SERVES = Committed("big", "big.service", healthy=True, loading=False, stale=False)


def big(**changes: Any) -> Found:
    return _found("big", RUNS, changes)


def small(**changes: Any) -> Found:
    return _found("small", DOWN, changes)


def _found(name: str, state: Loaded, changes: dict[str, Any]) -> Found:
    for field in [field for field in changes if hasattr(state, field)]:
        state = dataclasses.replace(state, **{field: changes.pop(field)})
    fields = {"unit_file": AS_WRITTEN, "env_files": {"/e": AS_WRITTEN}, "drop_ins": (), **changes}
    return Found(name, f"{name}.service", loaded=state, **fields)


def committed(**changes: Any) -> Committed:
    return dataclasses.replace(SERVES, **changes)


CASES = {
    "as it shall be": ([big(), small()], SERVES, {}),
    "unit edited": (
        [big(unit_file=EDITED), small()],
        SERVES,
        {"unit:big": ["big.service was edited on the host"]},
    ),
    "unit of a deployment that is not active edited": (
        [big(), small(unit_file=EDITED)],
        SERVES,
        {"unit:small": ["small.service was edited on the host"]},
    ),
    "unit removed": (
        [big(), small(unit_file=MISSING)],
        SERVES,
        {"unit:small": ["small.service was removed from the host"]},
    ),
    "environment edited": (
        [big(env_files={"/big.env": EDITED}), small(env_files={"/a": MISSING, "/b": OPEN})],
        SERVES,
        {
            "env:big": ["/big.env was edited on the host"],
            "env:small": [
                "/a was removed from the host",
                "/b holds secrets, and others may read it",
            ],
        },
    ),
    "unit edited, with what was changed": (
        [big(unit_file=EDITED, edit="- a + b"), small()],
        SERVES,
        {"unit:big": ["big.service was edited on the host: - a + b"]},
    ),
    "not yet installed": ([big(), small(unit_file=NOT_WRITTEN)], SERVES, {}),
    "drop-in added": (
        [big(drop_ins=("/x.conf: [Service]",)), small()],
        SERVES,
        {"unit:big": ["big.service has the drop-in /x.conf: [Service]"]},
    ),
    "another unit enabled": (
        [big(), small(enabled="enabled")],
        SERVES,
        {"unit:small": ["small.service is enabled, though big is what starts at boot"]},
    ),
    "the right one not enabled": (
        [big(enabled="disabled"), small()],
        SERVES,
        {"unit:big": ["big.service is not enabled, and so does not start at boot"]},
    ),
    "unit dead": (
        [big(active="failed"), small()],
        committed(healthy=False),
        {"stage": ["big.service is failed: big does not serve"]},
    ),
    "wrong model serves": (
        [big(active="inactive"), small(active="active")],
        committed(healthy=False),
        {
            "stage": [
                "big.service is inactive: big does not serve",
                "small.service runs, though it shall not",
            ]
        },
    ),
    "runs but does not answer": (
        [big(), small()],
        committed(healthy=False),
        {"stage": ["big.service is active, but big does not answer"]},
    ),
    "still loads": ([big(), small()], committed(healthy=False, loading=True), {}),
    "started from edited files": (
        [big(), small()],
        committed(stale=True),
        {"stage": ["big.service was started with what had been edited on the host"]},
    ),
    "nothing was ever committed": ([big(), small()], None, {}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_drift(case: tuple[list[Found], Committed | None, dict[str, list[str]]]) -> None:
    found, serves, expected = case
    assert drifted(found, serves, expects="") == expected


def test_another_model_than_the_program_believes_to_serve_is_drift() -> None:
    drift = drifted([big(), small()], SERVES, expects="small")
    assert drift == {"stage": ["big serves, small is declared"]}
    assert drifted([big(), small()], None, expects="small") == {
        "stage": ["nothing serves, small is declared"]
    }
    assert drifted([big(), small()], SERVES, expects="big") == {}
