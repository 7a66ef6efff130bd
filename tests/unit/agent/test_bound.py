"""The stated time covers every path, by the deadlines that the phases really use."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cutover_agent import clock, containers, ending, phases
from cutover_agent.bound import bound
from cutover_agent.ending import Ended
from cutover_agent.order import Deadlines, Hooks, Order, Probe
from cutover_agent.release_plan import ReleasePlan, Tree
from cutover_agent.store import Store
from tests.unit.agent.samples import VLLM, landscape, order, process, rules

SHORT = Deadlines(stop=200, release=300, gate=400, load=500, smoke=600, settle=700, kill=30)
STOP, RELEASE = 200 + 30, 200 + 10 + 30 + 30
"""Until a unit is gone; until servers outside of units, and after them units, are."""
THERE = RELEASE + 300 + 400 + 500 + 600
BACK = STOP + RELEASE + 300 + 700 + 500 + 600
MARGIN = 30


def timed(**changes: object) -> Order:
    return replace(order(), deadlines=replace(SHORT, **changes))  # type: ignore[arg-type]


def test_it_is_the_sum_of_the_longest_path() -> None:
    assert bound(timed(), timed()).seconds == THERE + 2 * BACK + MARGIN


def test_all_of_it_but_the_margin_scales_with_the_deadlines() -> None:
    tenth = Deadlines(**{name: value // 10 for name, value in vars(SHORT).items()})
    scaled = bound(timed(**vars(tenth)), timed(**vars(tenth)))
    assert (scaled.seconds - MARGIN) * 10 == bound(timed(), timed()).seconds - MARGIN


def test_without_a_way_back_it_ends_with_the_stop_of_the_new_one() -> None:
    assert bound(timed(), None).seconds == THERE + STOP + MARGIN


def test_every_container_that_is_ended_may_take_its_stop_time_and_a_call() -> None:
    boxed = replace(timed(), also_end=("a", "b"))
    more = bound(boxed, timed()).seconds - bound(timed(), timed()).seconds
    assert more == 3 * 2 * (200 + containers.CALL_SECONDS)


def test_a_slow_nvidia_smi_counts_for_every_time_it_is_asked() -> None:
    slow, fast = bound(timed(), timed(), 200.0), bound(timed(), timed())
    gate = 4 * 200 - 400
    assert slow.seconds - fast.seconds == gate + (4 + 2 * 5) * 200


def test_a_slower_previous_model_counts_twice() -> None:
    slow, fast = bound(timed(), timed(load=600)), bound(timed(), timed())
    assert slow.seconds - fast.seconds == 2 * 100


def test_every_request_of_the_smoke_and_every_hook_counts() -> None:
    many = replace(timed(), probe=Probe("http://127.0.0.1:8000", "small", requests=3))
    assert bound(many, None).seconds - bound(timed(), None).seconds == 2 * 600
    hooked = replace(timed(), hooks=Hooks(("a",), ("b",), ("c",), seconds=7))
    assert bound(hooked, None).seconds - bound(timed(), None).seconds == 2 * 7


def test_requests_in_flight_of_the_old_model_count() -> None:
    assert bound(timed(drain=70), timed(drain=9)).seconds == bound(timed(), timed()).seconds + 9
    assert bound(timed(drain=70), None).seconds == bound(timed(), None).seconds


def test_it_names_its_parts() -> None:
    said = bound(timed(), timed()).describe()
    assert said == (
        f"at the latest {THERE + 2 * BACK + MARGIN} s after the stop a verified model serves "
        "(stop 270 + release 300 + gate 400 + load 500 + smoke 600 + going back 2 x 5200 + "
        "margin 30)"
    )


@pytest.mark.parametrize(
    ("stop", "release", "kill"),
    [(120, 60, 15), (2, 60, 15), (120, 25, 15), (600, 18, 15), (8, 4, 1)],
)
def test_a_release_that_never_comes_to_an_end_takes_no_longer_than_its_two_terms(
    stop: int, release: int, kill: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look finds a server that was just born, and that only SIGKILL ends, in its last moment.

    What is born later is what the gate sees.
    """
    time, ends = 0.0, 0
    seen, born = landscape(), process(50, *VLLM)

    def end(trees: Any, seconds: float, patience: float) -> Ended:
        nonlocal time, ends
        time += ending.longest(seconds, patience)
        ends += 1
        return Ended((born,), ())

    monkeypatch.setattr(clock, "now", lambda: time)
    monkeypatch.setattr(phases, "survey", lambda: seen)
    monkeypatch.setattr(phases, "look_again", lambda _: seen)
    monkeypatch.setattr(phases, "rules_for", lambda *_: rules())
    monkeypatch.setattr(phases, "plan_release", lambda *_: ReleasePlan(end=(Tree(born, (born,)),)))
    monkeypatch.setattr(phases, "uids_of", lambda *_: frozenset())
    monkeypatch.setattr(phases, "end_trees", end)
    store = Store(tmp_path)
    store.prepare()
    asked = replace(order(), deadlines=Deadlines(stop=stop, release=release, kill=kill))
    does = phases.Phases(store, lambda _: None)
    does.release(asked)
    terms = dict(bound(asked, None).terms)
    assert 1 < ends <= 1 + phases.ROUNDS
    assert time <= terms["stop"] + terms["release"]
