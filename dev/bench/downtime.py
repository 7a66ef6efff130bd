"""How long nothing serves: a switch by `pulumi up`, near and far, beside the ritual by hand."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import cycle

from bench.comparison import OURS, Comparison, seconds
from bench.fleet import ACTIVE, Fleet
from bench.options import Options
from bench.ritual import RITUALS, Ritual, prepare
from bench.watch import Watch, served
from sandbox import Host

OTHER = "kimi-k25-int4"
ONE_WAY_SECONDS = 0.075
FAR = "cutover, 150 ms away"
MOST_DEAD_SECONDS = 1.0
MOST_SLOWER_SECONDS = 0.2
QUICKEST_RITUAL = RITUALS[0].name


def compare(fleet: Fleet, options: Options) -> Iterator[Comparison]:
    """Every way switches to and fro between two models on vLLM that load in a second."""
    near = fleet.host("box1")
    stack = fleet.stack(1)
    manual = fleet.host("manual")
    units = prepare(manual, ACTIVE, OTHER)
    _await_model(manual)
    ours, by_hand = cycle((OTHER, ACTIVE)), cycle((OTHER, ACTIVE))

    def by_pulumi(one_way: float) -> None:
        near.slow_down(one_way)
        stack.configure(active=next(ours))
        stack.up()

    def by_script(ritual: Ritual) -> None:
        ritual.switch(manual, units[next(by_hand)])

    ways: dict[str, tuple[Host, Callable[[], None]]] = {
        OURS: (near, partial(by_pulumi, 0.0)),
        FAR: (near, partial(by_pulumi, ONE_WAY_SECONDS)),
    }
    for ritual in RITUALS[:1] if options.quick else RITUALS:
        ways[ritual.name] = (manual, partial(by_script, ritual))
    seen = watched(options.runs, ways)
    near.slow_down(0.0)
    dead = {way: [each.dead_to_exec for each in all_] for way, all_ in seen.items()}
    down = {way: [each.nothing_served for each in all_] for way, all_ in seen.items()}
    unloaded = {way: [each.before_load for each in all_] for way, all_ in seen.items()}
    yield Comparison("last old process dead -> new one exec'd", "s", dead, limit=MOST_DEAD_SECONDS)
    far = {OURS: dead[FAR]}
    yield Comparison("the same 150 ms away", "s", far, limit=MOST_DEAD_SECONDS)
    name = "nothing serves, without the load"
    yield Comparison(name, "s", unloaded, limits={QUICKEST_RITUAL: 1.0})
    yield Comparison("nothing serves, with the load", "s", down, limits={QUICKEST_RITUAL: 1.0})
    took = {way: [each.took for each in all_] for way, all_ in seen.items()}
    yield Comparison("the whole switch, from command to prompt", "s", took)
    slower = statistics.median(down[FAR]) - statistics.median(down[OURS])
    name = "nothing serves: what 150 ms add to the median"
    yield Comparison(name, "s", {OURS: [slower]}, limit=MOST_SLOWER_SECONDS)


def watched(
    runs: int, ways: Mapping[str, tuple[Host, Callable[[], None]]]
) -> dict[str, list[Watch]]:
    """What was seen of each way's switches.

    They take turns, to and fro: so each way switches in both directions.
    """
    seen: dict[str, list[Watch]] = {way: [] for way in ways}
    for number in range(runs):
        turn = list(ways.items())
        for way, (host, switch) in reversed(turn) if number % 2 else turn:
            with Watch(host) as watch:
                watch.took = seconds(switch)
            seen[way].append(watch)
    return seen


def _await_model(host: Host, seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not served(host):
        assert time.monotonic() < deadline, f"no model serves on {host.name}"
        time.sleep(0.1)
