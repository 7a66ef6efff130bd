"""Nothing to do, hosts asked: beside Ansible and pyinfra, for a preview, an `up`, both in one."""

from __future__ import annotations

from collections.abc import Iterator

from bench.comparison import Comparison, in_turn
from bench.fleet import Fleet
from bench.modes import MODES, UP_ALONE, on, runs, ways
from bench.options import Options
from bench.rivals import ANSIBLE, PYINFRA, Rivals

LIMITS = {1: {ANSIBLE: 0.35, PYINFRA: 1.0}, 20: {ANSIBLE: 0.15}}
"""By hosts, for `up --skip-preview`."""


def compare(fleet: Fleet, options: Options) -> Iterator[Comparison]:
    """5 units, 5 environment files and 1 service on each host."""
    for count in options.hosts:
        stack = fleet.stack(count)
        rivals = Rivals(fleet.folder / f"rivals{count}", fleet.hosts(count))
        rivals.lay_out(stack)
        for mode in MODES:
            yield Comparison(
                f"nothing to do, {on(count)}, {mode}",
                "s",
                in_turn(runs(options, count, mode), ways(stack, rivals, mode)),
                limits=LIMITS.get(count, {}) if mode == UP_ALONE else {},
            )
