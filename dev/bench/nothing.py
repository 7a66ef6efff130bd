"""Nothing to do, hosts asked: beside Ansible and pyinfra, for a preview, an `up`, both in one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from bench.comparison import OURS, Comparison, in_turn, seconds
from bench.fleet import Fleet
from bench.options import Options
from bench.rivals import ANSIBLE, PYINFRA, Rivals

PREVIEW, UP, UP_ALONE = "preview", "up", "up --skip-preview"
LIMITS = {1: {ANSIBLE: 0.35, PYINFRA: 1.0}, 20: {ANSIBLE: 0.15}}
"""By hosts, for `up --skip-preview`."""
MOST_RUNS = {20: 3}


def compare(fleet: Fleet, options: Options) -> Iterator[Comparison]:
    """5 units, 5 environment files and 1 service on each host."""
    for count in options.hosts:
        stack = fleet.stack(count)
        rivals = Rivals(fleet.folder / f"rivals{count}", fleet.hosts(count))
        rivals.folder.mkdir(exist_ok=True)
        rivals.lay_out(stack)
        ours: dict[str, Callable[[], object]] = {
            PREVIEW: stack.preview,
            UP_ALONE: stack.up,
            UP: partial(stack._run, "up", "--yes", "--non-interactive", "--stack", stack.name),
        }
        runs = min(options.runs, MOST_RUNS.get(count, options.runs))
        for mode, act in ours.items():
            ways: dict[str, Callable[[], float]] = {OURS: partial(seconds, act)}
            ways.update(beside(rivals, mode))
            yield Comparison(
                f"nothing to do, {count} host{'s' * (count > 1)}, {mode}",
                "s",
                in_turn(runs, ways),
                limits=LIMITS.get(count, {}) if mode == UP_ALONE else {},
            )


def beside(rivals: Rivals, mode: str) -> dict[str, Callable[[], float]]:
    """The others in the same mode: a check, the deed, or the one after the other."""
    checks = {PREVIEW: [True], UP_ALONE: [False], UP: [True, False]}[mode]

    def run(tool: Callable[[bool], None]) -> float:
        return sum(seconds(partial(tool, check)) for check in checks)

    return {ANSIBLE: partial(run, rivals.ansible), PYINFRA: partial(run, rivals.pyinfra)}
