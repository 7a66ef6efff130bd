"""The stated time covers every path, by the deadlines that the phases really use."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cutover_agent import clock, ending, phases
from cutover_agent.bound import bound
from cutover_agent.ending import Ended
from cutover_agent.order import Deadlines, Hooks, Order, Probe
from cutover_agent.release_plan import ReleasePlan, Tree
from cutover_agent.store import Store
from tests.unit.agent.samples import VLLM, landscape, order, process

SHORT = Deadlines(stop=2, release=3, gate=4, load=5, smoke=6)


def timed(**changes: object) -> Order:
    return replace(order(), deadlines=replace(SHORT, **changes))  # type: ignore[arg-type]


def test_it_is_the_sum_of_the_longest_path() -> None:
    stop = 2 * 2 + 10 + 5 + 10
    back = stop + 3 + 60 + 5 + 6
    assert bound(timed(), timed()).seconds == stop + 3 + 4 + 5 + 6 + 2 * back + 30


def test_without_a_way_back_it_ends_with_the_stop_of_the_new_one() -> None:
    stop = 2 * 2 + 10 + 5 + 10
    assert bound(timed(), None).seconds == stop + 3 + 4 + 5 + 6 + stop + 30


def test_a_slower_previous_model_counts_twice() -> None:
    slow, fast = bound(timed(), timed(load=105)), bound(timed(), timed())
    assert slow.seconds - fast.seconds == 2 * 100


def test_every_request_of_the_smoke_and_every_hook_counts() -> None:
    many = replace(timed(), probe=Probe("http://127.0.0.1:8000", "small", requests=3))
    assert bound(many, None).seconds - bound(timed(), None).seconds == 2 * 6
    hooked = replace(timed(), hooks=Hooks(("a",), ("b",), ("c",), seconds=7))
    assert bound(hooked, None).seconds - bound(timed(), None).seconds == 2 * 7


def test_it_names_its_parts() -> None:
    said = bound(timed(), timed()).describe()
    assert said.startswith("at the latest 283 s after the stop a verified model serves (stop 29 +")
    assert "load 5" in said and "going back 2 x" in said


@pytest.mark.parametrize(("stop", "release"), [(120, 60), (2, 60), (120, 20), (600, 12)])
def test_a_release_that_never_comes_to_an_end_takes_no_longer_than_its_two_terms(
    stop: int, release: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look finds a server that was just born, and that only SIGKILL ends, in its last moment.

    What is born later is what the gate sees.
    """
    time, ends = 0.0, 0
    seen, born = landscape(), process(50, *VLLM)

    def end(trees: Any, seconds: float) -> Ended:
        nonlocal time, ends
        time += seconds + min(ending.ORPHAN_SECONDS, seconds) + ending.KILL_SECONDS
        ends += 1
        return Ended((born,), ())

    monkeypatch.setattr(clock, "now", lambda: time)
    monkeypatch.setattr(phases, "survey", lambda: seen)
    monkeypatch.setattr(phases, "look_again", lambda _: seen)
    monkeypatch.setattr(phases, "plan_for", lambda *_: ReleasePlan(end=(Tree(born, (born,)),)))
    monkeypatch.setattr(phases, "uids_of", lambda *_: frozenset())
    monkeypatch.setattr(phases, "end_trees", end)
    store = Store(tmp_path)
    store.prepare()
    asked = replace(order(), deadlines=Deadlines(stop=stop, release=release))
    does = phases.Phases(store, lambda _: None)
    does.release(asked)
    terms = dict(bound(asked, None).terms)
    assert 1 < ends <= 1 + phases.ROUNDS
    assert time <= terms["stop"] + terms["release"]
