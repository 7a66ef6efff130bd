"""What a step does with what it finds: every action, one row each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cutover_agent import converge as module
from cutover_agent import lock
from cutover_agent.attempt import UNTIL, Attempt, Journal
from cutover_agent.converge import SAME_RUN_SECONDS, Situation, converge, decide, look
from cutover_agent.follow import Failed
from cutover_agent.order import Order
from cutover_agent.store import Record, Store
from tests.unit.agent.samples import order

ORDER, OTHER = order(), order(deployment="big")
NEVER = 1e9


def attempt(of: str = ORDER.digest, outcome: str = "", told: bool = False) -> Attempt:
    return Attempt("t", of, "small", "boot", outcome=outcome, told=told)


def seen(
    last: Attempt | None = None,
    live: bool = False,
    right: bool = False,
    healthy: bool = False,
    since_step: float = NEVER,
) -> Situation:
    return Situation(last, live, right, healthy, since_step)


FAILED = attempt(outcome="rolled-back")
TOLD = attempt(outcome="rolled-back", told=True)
SERVED = attempt(outcome="serving")
OTHER_FAILED = attempt(OTHER.digest, "rolled-back")


@pytest.mark.parametrize(
    ("until", "situation", "action"),
    [
        pytest.param("staged", seen(), "stage", id="a fresh host is staged"),
        pytest.param("released", seen(), "start", id="a fresh host, the stage skipped"),
        pytest.param("serving", seen(), "start", id="everything skipped but the last step"),
        pytest.param("staged", seen(attempt(), live=True), "join", id="the same runs: stage"),
        pytest.param("gated", seen(attempt(), live=True), "join", id="the same runs: gate"),
        pytest.param(
            "staged", seen(attempt(OTHER.digest), live=True), "busy", id="another runs: stage"
        ),
        pytest.param(
            "serving", seen(attempt(OTHER.digest), live=True), "busy", id="another runs: serve"
        ),
        pytest.param("staged", seen(SERVED, right=True, healthy=True), "pass", id="serves: stage"),
        pytest.param("gated", seen(SERVED, right=True, healthy=True), "pass", id="serves: gate"),
        pytest.param(
            "gated",
            seen(SERVED, right=True, healthy=True, since_step=1),
            "join",
            id="served before the later steps of its run came: they tell their part",
        ),
        pytest.param(
            "staged",
            seen(SERVED, right=True, healthy=True, since_step=1),
            "pass",
            id="served, and a new run begins",
        ),
        pytest.param(
            "gated",
            seen(attempt(OTHER.digest, "serving"), right=True, healthy=True, since_step=1),
            "pass",
            id="what another order did is not told",
        ),
        pytest.param("gated", seen(SERVED, right=True), "start", id="right, but does not answer"),
        pytest.param("staged", seen(SERVED, right=True), "stage", id="not healthy: stage"),
        pytest.param("gated", seen(healthy=True), "start", id="a healthy wrong model"),
        pytest.param("gated", seen(FAILED, since_step=1), "fail", id="its own failure, untold"),
        pytest.param("serving", seen(FAILED, since_step=59), "fail", id="untold for 59 s"),
        pytest.param("gated", seen(FAILED, since_step=60), "start", id="untold, another run"),
        pytest.param("staged", seen(FAILED, since_step=1), "stage", id="a new run stages"),
        pytest.param("released", seen(TOLD, since_step=1), "start", id="the same config retries"),
        pytest.param("staged", seen(TOLD, since_step=1), "stage", id="the same config: stage"),
        pytest.param("gated", seen(OTHER_FAILED, since_step=1), "start", id="another's failure"),
        pytest.param(
            "gated",
            seen(OTHER_FAILED, right=True, healthy=True, since_step=1),
            "pass",
            id="reverted after a roll-back",
        ),
        pytest.param(
            "serving",
            seen(OTHER_FAILED, right=True, since_step=1),
            "start",
            id="reverted after a dead end",
        ),
        pytest.param("gated", seen(attempt()), "recover", id="the last one broke off"),
        pytest.param(
            "gated",
            seen(FAILED, right=True, healthy=True, since_step=1),
            "fail",
            id="failed in this run, though an equal model serves again",
        ),
        pytest.param("gated", seen(FAILED, since_step=-99), "start", id="a step of another boot"),
    ],
)
def test_a_step_decides_from_what_it_finds(until: str, situation: Situation, action: str) -> None:
    assert decide(ORDER, until, situation) == action


@pytest.mark.parametrize("outcome", ["refused", "rolled-back", "dead-end"])
@pytest.mark.parametrize("until", [name for name in UNTIL if name != "staged"])
def test_no_step_of_the_same_run_passes_over_a_failure(until: str, outcome: str) -> None:
    last = attempt(outcome=outcome)
    assert decide(ORDER, until, seen(last, since_step=SAME_RUN_SECONDS / 2)) == "fail"


@pytest.mark.parametrize("until", list(UNTIL))
@pytest.mark.parametrize("last", [None, attempt(), FAILED, TOLD, SERVED, OTHER_FAILED])
@pytest.mark.parametrize(("right", "healthy"), [(False, True), (True, False), (False, False)])
def test_nothing_passes_unless_the_right_model_answers(
    until: str, last: Attempt | None, right: bool, healthy: bool
) -> None:
    assert decide(ORDER, until, seen(last, right=right, healthy=healthy)) != "pass"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(lock, "FOLDER", tmp_path / "run")
    monkeypatch.setattr(module, "adopt", lambda *_: False)
    made = Store(tmp_path)
    made.prepare()
    made.own(Record("o", "env", "small", "vllm-small.service", made.keep("")))
    return made


def test_who_starts_a_cutover_has_staged_it_whatever_another_operator_staged_since(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the last steps of this `up` would find an order that is not theirs."""

    def start(*_: Any) -> Journal:
        raise Failed("only to here")

    monkeypatch.setattr(module, "start", start)
    store.set_staged(ORDER)
    store.set_staged(OTHER)
    with pytest.raises(Failed, match="only to here"):
        converge(store, ORDER, "released")
    assert store.staged() == ORDER


def test_a_new_run_tries_again_though_nobody_heard_how_the_last_one_ended(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The client died between two steps: the failure is no answer to the run after that."""
    staged: list[Order] = []

    def stage(_: Store, order: Order) -> dict[str, Any]:
        staged.append(order)
        return {}

    monkeypatch.setattr(module, "stage", stage)
    journal = Journal(store, "t")
    last = journal.create(ORDER)
    last.outcome, last.error = "rolled-back", "smoke: no answer\n  | a line of the journal"
    journal.save(last)
    journal.note_step()
    assert decide(ORDER, "released", look(store, ORDER)) == "fail", "in the run that began it"
    converge(store, ORDER, "staged")
    assert staged == [ORDER]
    said = "the last cutover to small failed when nobody listened: smoke: no answer\n"
    assert capsys.readouterr().err == said
    assert decide(ORDER, "released", look(store, ORDER)) == "start"
