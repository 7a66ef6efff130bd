"""A host remembers so many cutovers, and no more."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutover_agent import history
from cutover_agent.attempt import Journal, attempts, latest
from cutover_agent.history import last_loads, make_room
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
