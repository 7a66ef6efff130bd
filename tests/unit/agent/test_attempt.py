"""A transaction's record: saved, told, and found again."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutover_agent import attempt
from cutover_agent.attempt import PHASES, UNTIL, Attempt, Journal, latest, new_id
from cutover_agent.clock import boot_id, now
from cutover_agent.store import Store
from tests.unit.agent.samples import order


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path)
    made.prepare()
    return made


def test_a_new_record_is_read_back_with_its_order(store: Store) -> None:
    made = Journal(store, "a").create(order())
    again = Journal(store, "a")
    assert again.load() == made
    assert (made.id, made.order, made.deployment, made.boot, made.number, made.phase) == (
        "a",
        order().digest,
        "small",
        boot_id(),
        1,
        "",
    )
    assert again.order() == order()
    assert Journal(store, "b").load() is None


def test_a_saved_change_is_read_back(store: Store) -> None:
    journal = Journal(store, "a")
    made = journal.create(order())
    made.done.append("stage")
    made.outcome, made.error, made.told = "rolled-back", "why", True
    made.evidence["gate"] = {"line": "8 of 8"}
    journal.save(made)
    assert Journal(store, "a").load() == made


@pytest.mark.parametrize(
    ("outcome", "failed"),
    [("", False), ("serving", False), ("refused", True), ("rolled-back", True), ("dead-end", True)],
)
def test_only_an_end_without_the_model_is_a_failure(outcome: str, failed: bool) -> None:
    assert Attempt("a", "d", "small", "boot", outcome=outcome).failed is failed


def test_every_step_waits_for_a_phase_and_later_steps_for_later_ones() -> None:
    ends = [PHASES.index(phase) for phase in UNTIL.values()]
    assert ends == sorted(set(ends))
    assert ends[-1] == len(PHASES) - 1


@pytest.mark.parametrize("until", list(UNTIL))
def test_a_part_is_reached_when_its_last_phase_is_over(until: str) -> None:
    last = PHASES.index(UNTIL[until])
    made = Attempt("a", "d", "small", "boot", done=list(PHASES[:last]))
    assert not made.reached(until)
    made.done.append(PHASES[last])
    assert made.reached(until)


def test_events_are_kept_in_order_and_a_half_written_one_is_left_out(store: Store) -> None:
    journal = Journal(store, "a")
    assert journal.events() == []
    journal.create(order())
    journal.tell("release", "stopping vllm-small.service")
    journal.tell("gate", "8 of 8 \u2028 GPUs\n")
    with open(journal.folder / "events.jsonl", "a") as file:
        file.write('{"at": 1')
    told = [(event["phase"], event["text"]) for event in journal.events()]
    assert told == [
        ("release", "stopping vllm-small.service"),
        ("gate", "8 of 8 \u2028 GPUs\n"),
    ]


def test_the_last_step_is_remembered(store: Store) -> None:
    journal = Journal(store, "a")
    journal.create(order())
    assert journal.last_step() == 0
    journal.note_step()
    assert 0 <= now() - journal.last_step() < 5


def test_a_step_of_another_boot_does_not_count(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(store, "a")
    journal.create(order())
    journal.note_step()
    monkeypatch.setattr(attempt, "boot_id", lambda: "another")
    assert journal.last_step() == 0


def test_the_newest_record_is_found_and_an_unfinished_folder_is_not(store: Store) -> None:
    assert latest(store) is None
    for _ in range(3):
        name = new_id()
        Journal(store, name).create(order())
    (store.transactions / "99990101T000000-ffff").mkdir()
    found = latest(store)
    assert found is not None
    assert found.load() is not None


@pytest.mark.parametrize("step", [0.0, 0.2, -3600.0])
def test_the_newest_is_the_one_made_last_whatever_the_clock_does(
    store: Store, step: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two within one second, or a clock that was set back between them."""
    time = 1_700_000_000.0
    monkeypatch.setattr(attempt, "wall", lambda: time)
    for _ in range(12):
        name = new_id()
        Journal(store, name).create(order())
        found = latest(store)
        assert found is not None
        assert found.name == name
        time += step
