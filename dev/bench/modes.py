"""How each tool is told to look, to act, or to do the one after the other."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from bench.comparison import OURS, seconds
from bench.options import Options
from bench.rivals import ANSIBLE, PYINFRA, Rivals
from tests.acceptance.stack import Stack

PREVIEW, UP_ALONE, UP = MODES = "preview", "up --skip-preview", "up"
MANY = 20
"""Hosts of which one run takes minutes."""


def ways(stack: Stack, rivals: Rivals, mode: str) -> dict[str, Callable[[], float]]:
    """Seconds of ours, Ansible's and pyinfra's; each time anew."""
    ours = {PREVIEW: stack.preview, UP_ALONE: stack.up, UP: stack.up_after_preview}[mode]
    checks = {PREVIEW: [True], UP_ALONE: [False], UP: [True, False]}[mode]

    def run(tool: Callable[[bool], None]) -> float:
        return sum(seconds(partial(tool, check)) for check in checks)

    return {
        OURS: partial(seconds, ours),
        ANSIBLE: partial(run, rivals.ansible),
        PYINFRA: partial(run, rivals.pyinfra),
    }


def runs(options: Options, count: int, mode: str) -> int:
    """How often, on so many hosts: of many, only the mode with a limit more than once."""
    most = 3 if mode == UP_ALONE else 1
    return min(options.runs, most) if count >= MANY else options.runs


def on(count: int) -> str:
    """The hosts, for a comparison's name."""
    return f"{count} host{'s' * (count > 1)}"
