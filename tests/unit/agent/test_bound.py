"""The stated time covers every path, by the deadlines that the phases really use."""

from __future__ import annotations

from dataclasses import replace

from cutover_agent.bound import bound
from cutover_agent.order import Deadlines, Hooks, Order, Probe
from tests.unit.agent.samples import order

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
