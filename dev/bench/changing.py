"""One changed flag of a deployment that does not serve: beside Ansible and pyinfra."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count as counting
from pathlib import Path

from bench.comparison import Comparison
from bench.fleet import Fleet
from bench.modes import MODES, PREVIEW, on, runs, ways
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
        before = file_of(stack).read_text()
        for mode in MODES:
            figures: dict[str, list[float]] = {}
            for _ in range(runs(options, count, mode)):
                path, old = unit_of(stack)
                change(stack, next(numbers))
                wanted = old if mode == PREVIEW else unit_of(stack)[1]
                rivals.lay_out(stack)
                for way, measure in ways(stack, rivals, mode).items():
                    put(hosts, path, old)
                    figures.setdefault(way, []).append(measure())
                    assert all(host.read(path) == wanted for host in hosts), way
                stack.up()
            yield Comparison(f"one flag, {on(count)}, {mode}", "s", figures)
        file_of(stack).write_text(before)
        stack.up()


def put(hosts: list[Host], path: str, text: str) -> None:
    """Makes the unit what it was, to systemd too."""
    for host in hosts:
        host.write(path, text)
        host.exec(["systemctl", "daemon-reload"])


def unit_of(stack: Stack) -> tuple[str, str]:
    """Where the unit is on a host, and its text as the catalogue says now."""
    one = load_catalogue(stack.folder / "deployments")[DEPLOYMENT]
    return f"/etc/systemd/system/{one.unit}", render_unit(one)


def change(stack: Stack, number: int) -> None:
    """Gives the deployment another flag, as an operator would."""
    path = file_of(stack)
    path.write_text(FLAG.sub(f"args:\n  seed: {number}\n", path.read_text()))


def file_of(stack: Stack) -> Path:
    """Its file in the stack's catalogue."""
    return stack.folder / f"deployments/{DEPLOYMENT}.yaml"
