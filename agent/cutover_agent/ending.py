"""Ends processes outside our units: by pidfd, so that no reused number is ever hit."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Optional

from .clock import Deadline
from .processes import Process, read_process
from .release_plan import Tree

KILL_SECONDS = 10
"""How long a process may take to vanish after SIGKILL before it counts as unkillable."""


@dataclass(frozen=True)
class Ended:
    """How a tree of processes ended."""

    killed: tuple[Process, ...]
    """Those that needed SIGKILL."""
    alive: tuple[Process, ...]
    """Those that even SIGKILL did not end."""


def end_trees(trees: Sequence[Tree], seconds: float) -> Ended:
    """SIGTERM to each root; after `seconds`, SIGTERM then SIGKILL to all that is left."""
    members = {process.pid: process for tree in trees for process in tree.members}
    with _handles(members.values()) as handles:
        for tree in trees:
            _signal(handles.get(tree.root.pid), signal.SIGTERM)
        left = _wait(handles, Deadline(seconds))
        for pid in left:
            _signal(handles[pid], signal.SIGTERM)
        # Those that lost their parent rather than the will to stop go at once.
        killed = _wait({pid: handles[pid] for pid in left}, Deadline(min(5.0, seconds)))
        for pid in killed:
            _signal(handles[pid], signal.SIGKILL)
        alive = _wait({pid: handles[pid] for pid in killed}, Deadline(KILL_SECONDS))
    return Ended(
        tuple(members[pid] for pid in killed if pid not in alive),
        tuple(members[pid] for pid in alive),
    )


@contextmanager
def _handles(processes: Iterable[Process]) -> Iterator[dict[int, int]]:
    """A pidfd for each process that still is the one that was looked at."""
    handles: dict[int, int] = {}
    try:
        for process in processes:
            try:
                handle = os.pidfd_open(process.pid)
            except ProcessLookupError:
                continue
            # Read after the pidfd is held: if it is the same process now, it stays so.
            again = read_process(process.pid)
            if again and again.start == process.start and again.state != "Z":
                handles[process.pid] = handle
            else:
                os.close(handle)
        yield handles
    finally:
        for handle in handles.values():
            os.close(handle)


def _signal(handle: Optional[int], number: signal.Signals) -> None:
    if handle is not None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, number)


def _wait(handles: dict[int, int], deadline: Deadline) -> list[int]:
    """Waits until all have ended or time is up; returns those that have not."""
    left = dict(handles)
    while left:
        ready, _, _ = select.select(list(left.values()), [], [], deadline.left)
        left = {pid: handle for pid, handle in left.items() if handle not in ready}
        if not ready:
            break
    return list(left)
