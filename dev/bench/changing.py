"""One changed flag of a deployment that does not serve: beside Ansible and pyinfra."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count as counting

from bench.comparison import OURS, Comparison, seconds
from bench.fleet import Fleet
from bench.nothing import MOST_RUNS, PREVIEW, UP, UP_ALONE, beside
from bench.options import Options
from bench.rivals import Rivals
from cutover.catalogue import load_catalogue
from cutover.units import render_unit
from sandbox import Host
from tests.acceptance.stack import Stack

DEPLOYMENT = "kimi-k25-int4"
FLAG = re.compile(r"(?m)^args:\n(  seed: \d+\n)?")


def compare(fleet: Fleet, options: Options) -> Iterator[Comparison]:
    """Each way finds the old unit on the hosts and brings the new one there."""
    numbers = counting(1)
    for count in options.hosts:
        stack, hosts = fleet.stack(count), fleet.hosts(count)
        rivals = Rivals(fleet.folder / f"rivals{count}", hosts)
        rivals.folder.mkdir(exist_ok=True)
        before = (stack.folder / f"deployments/{DEPLOYMENT}.yaml").read_text()
        up = ("up", "--yes", "--non-interactive", "--stack", stack.name)
        ours: dict[str, Callable[[], object]] = {
            PREVIEW: stack.preview,
            UP_ALONE: stack.up,
            UP: partial(stack._run, *up),
        }
        runs = min(options.runs, MOST_RUNS.get(count, options.runs))
        for mode, act in ours.items():
            figures: dict[str, list[float]] = {}
            for _ in range(runs):
                old = text_of(stack)
                change(stack, next(numbers))
                rivals.lay_out(stack)
                ways: dict[str, Callable[[], float]] = {OURS: partial(seconds, act)}
                ways.update(beside(rivals, mode))
                measure_each(ways, hosts, old, figures)
                stack.up()
            yield Comparison(f"one flag, {count} host{'s' * (count > 1)}, {mode}", "s", figures)
        (stack.folder / f"deployments/{DEPLOYMENT}.yaml").write_text(before)
        stack.up()


def measure_each(
    ways: Mapping[str, Callable[[], float]],
    hosts: list[Host],
    old: tuple[str, str],
    figures: dict[str, list[float]],
) -> None:
    """Adds a figure of each way, which finds the old text on every host."""
    unit, text = old
    for way, measure in ways.items():
        for host in hosts:
            host.write(f"/etc/systemd/system/{unit}", text)
        figures.setdefault(way, []).append(measure())


def text_of(stack: Stack) -> tuple[str, str]:
    """The unit's name and text as the catalogue says now."""
    one = load_catalogue(stack.folder / "deployments")[DEPLOYMENT]
    return one.unit, render_unit(one)


def change(stack: Stack, number: int) -> None:
    """Gives the deployment another flag, as an operator would."""
    path = stack.folder / f"deployments/{DEPLOYMENT}.yaml"
    path.write_text(FLAG.sub(f"args:\n  seed: {number}\n", path.read_text()))
