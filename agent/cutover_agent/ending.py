"""Ends processes outside units: by pidfd, so that no reused number is ever hit."""

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
from .systemd import KILL_SECONDS

ORPHANS_SHARE = 3
"""Those that have lost their parent, not the will to stop, get this part of the time to vanish
after SIGKILL, before it."""


@dataclass(frozen=True)
class Ended:
    """How trees of processes ended."""

    killed: tuple[Process, ...]
    """Those that needed SIGKILL."""
    alive: tuple[Process, ...]
    """Those that even SIGKILL did not end, as they are now."""


def end_trees(trees: Sequence[Tree], seconds: float, kill: float = KILL_SECONDS) -> Ended:
    """SIGTERM to each root; after `seconds`, SIGTERM then SIGKILL to all that is left.

    What is there `kill` seconds after SIGKILL counts as alive. Takes no longer than the processes
    need, and at most `longest(seconds, kill)`.
    """
    members = {process.pid: process for tree in trees for process in tree.members}
    with handles(members.values()) as held:
        for tree in trees:
            _signal(held.get(tree.root.pid), signal.SIGTERM)
        left = _wait_for_roots(trees, held, Deadline(seconds))
        for pid in left:
            _signal(left[pid], signal.SIGTERM)
        left = _wait(left, Deadline(min(kill / ORPHANS_SHARE, seconds)))
        for pid in left:
            _signal(left[pid], signal.SIGKILL)
        alive = _wait(left, Deadline(kill))
    now = {pid: read_process(pid) or members[pid] for pid in alive}
    return Ended(
        tuple(members[pid] for pid in left if pid not in alive),
        tuple(now.values()),
    )


def longest(seconds: float, kill: float) -> float:
    """How long `end_trees` takes at most."""
    return seconds + min(kill / ORPHANS_SHARE, seconds) + kill


def await_death(processes: Iterable[Process], deadline: Deadline) -> bool:
    """Waits until all of these are dead, and comes back in that very moment; False where they are
    not when time is up, or where that cannot be seen.
    """
    try:
        with handles(processes) as held:
            return not _wait(held, deadline)
    except OSError:
        return False


def patience(stop: float, left: float, kill: float) -> float:
    """Seconds for `end_trees`, at most `stop`, so that the whole of it fits into what is left."""
    return max(0.0, min(stop, left - kill / ORPHANS_SHARE - kill))


def why_alive(process: Process) -> str:
    """What to do about a process that even SIGKILL did not end."""
    name = f"pid {process.pid} ({process.title}), state {process.state}"
    if process.state == "Z":
        return f"{name}: its parent, pid {process.parent}, has to reap it: end that, or reboot"
    if process.elsewhere:
        return f"{name}: it lives in another pid namespace: end it there, or its container"
    return f"{name}: it hangs in the kernel: reset the GPU (nvidia-smi --gpu-reset) or reboot"


@contextmanager
def handles(processes: Iterable[Process]) -> Iterator[dict[int, int]]:
    """A pidfd for each process that still is the one that was looked at, and not dead."""
    held: dict[int, int] = {}
    try:
        for process in processes:
            try:
                handle = os.pidfd_open(process.pid)
            except ProcessLookupError:
                continue
            # Read after the pidfd is held: if it is the same process now, it stays so.
            again = read_process(process.pid)
            if again and again.start == process.start and not again.dead:
                held[process.pid] = handle
            else:
                os.close(handle)
        yield held
    finally:
        for handle in held.values():
            os.close(handle)


def _signal(handle: Optional[int], number: signal.Signals) -> None:
    if handle is not None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, number)


def _wait_for_roots(
    trees: Sequence[Tree], held: dict[int, int], deadline: Deadline
) -> dict[int, int]:
    """Waits for all while a root lives; a tree without its root is not told to end by anybody."""
    left = dict(held)
    while left and any(tree.root.pid in left for tree in trees) and not deadline.passed:
        left = _wait(left, deadline, once=True)
    return left


def _wait(held: dict[int, int], deadline: Deadline, once: bool = False) -> dict[int, int]:
    """Waits until all (or `once`: one) have ended or time is up; returns those that have not."""
    left = dict(held)
    while left:
        poller = select.poll()
        for handle in left.values():
            poller.register(handle, select.POLLIN)
        ready = {handle for handle, _ in poller.poll(deadline.left * 1000)}
        left = {pid: handle for pid, handle in left.items() if handle not in ready}
        if not ready or once:
            break
    return left
