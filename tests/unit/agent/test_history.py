"""A host remembers so many cutovers, and no more."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutover_agent import history
from cutover_agent.attempt import Journal, attempts, latest
from cutover_agent.history import last_loads, last_phases, make_room
from cutover_agent.store import Store
from tests.unit.agent.samples import order


def test_the_oldest_cutovers_make_room_for_new_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "KEPT", 3)
    store = Store(tmp_path)
    store.prepare()
    (store.transactions / "half-made").mkdir()
    for number in range(1, 6):
        make_room(store)
        attempt = Journal(store, f"t{number}").create(order())
        assert attempt.number == number, "the count goes on"
        attempt.outcome, attempt.evidence = "serving", {"load_seconds": float(number)}
        Journal(store, attempt.id).save(attempt)
    assert list(attempts(store)) == ["t3", "t4", "t5"]
    assert len(list(store.transactions.iterdir())) == 3
    newest = latest(store)
    assert newest and newest.name == "t5"
    assert last_loads(store) == {"small": 5.0}


def test_only_a_switch_from_one_model_to_another_tells_how_long_the_next_takes(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path)
    store.prepare()
    for name, outcome, stop in (
        ("t1", "serving", 2.0),
        ("t2", "serving", 3.0),
        ("t3", "serving", 0.0),
        ("t4", "rolled-back", 4.0),
    ):
        attempt = Journal(store, name).create(order())
        attempt.outcome, attempt.evidence = outcome, {"phases": {"stop": stop}}
        Journal(store, name).save(attempt)
    assert last_phases(store) == {"small": {"stop": 3.0}}
