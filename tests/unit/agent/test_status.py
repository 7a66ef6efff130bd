"""Exit codes and text of `cutover status`."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutover_agent import lock, status, systemd
from cutover_agent.attempt import Journal
from cutover_agent.gpus import Reading
from cutover_agent.status import BUSY, NOTHING, OK, UNHEALTHY, describe
from cutover_agent.store import Serving, Store
from cutover_agent.systemd import UnitState
from tests.unit.agent.samples import order, reading


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    made = Store(tmp_path)
    made.prepare()
    up = UnitState("active", "running", 7, 0, "", "enabled", "success")
    monkeypatch.setattr(lock, "FOLDER", tmp_path / "run")
    monkeypatch.setattr(status, "read_gpus", lambda: reading(7, 0))
    monkeypatch.setattr(systemd, "state", lambda _: up)
    return made


@pytest.mark.parametrize(
    ("serves", "healthy", "busy", "code"),
    [
        (False, False, False, NOTHING),
        (True, True, False, OK),
        (True, False, False, UNHEALTHY),
        (True, True, True, BUSY),
        (False, False, True, BUSY),
    ],
)
def test_the_exit_code_tells_a_monitor(
    store: Store,
    serves: bool,
    healthy: bool,
    busy: bool,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(status, "is_healthy", lambda *_: healthy)
    if serves:
        store.set_serving(Serving(order(), "e" * 64, "t", 1.0, {"load_seconds": 5.0}))
    if busy:
        Journal(store, "t").create(order(deployment="big"))
        with lock.held("cutover"):
            got, facts = status.status(store)
        assert "a cutover to big is under way" in describe(facts)
    else:
        got, facts = status.status(store)
    assert got == code
    assert len({OK, UNHEALTHY, NOTHING, BUSY}) == 4
    assert ("NOT HEALTHY" in describe(facts)) is (serves and not healthy)
    assert facts.get("load_seconds") == (5.0 if serves else None)


def test_the_log_of_a_cutover_ends_with_its_bars_on_a_terminal_alone(store: Store) -> None:
    journal = Journal(store, "t")
    attempt = journal.create(order())
    attempt.evidence = {"phases": {"stop": 1.0, "weights": 9.0}}
    journal.save(attempt)
    journal.tell("smoke", "Paris")
    (plain,) = status.log(store).splitlines()
    assert plain.endswith("t smoke: Paris")
    shown = status.log(store, 80).splitlines()
    assert shown[0] == plain and [line.split()[0] for line in shown[1:]] == ["stop", "weights"]


def test_gpus_that_cannot_be_read_are_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "read_gpus", lambda: Reading((), "nvidia-smi exits 9: "))
    assert "nvidia-smi exits 9" in describe(status.status(store)[1])


def test_the_log_holds_the_events_of_every_transaction_oldest_first(store: Store) -> None:
    for name in ("b", "a"):
        Journal(store, name).create(order())
        Journal(store, name).tell("gate", f"said by {name}")
    lines = status.log(store).splitlines()
    assert [line.split(" ", 2)[2] for line in lines] == ["b gate: said by b", "a gate: said by a"]
