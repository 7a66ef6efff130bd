"""Inside a unit, before its model starts: ends what this very unit has left behind.

It runs as `ExecStartPre=-+`, after a crash as at any start, and must never keep a model from
starting: whatever happens it says so, and ends in time and with 0.
"""

from __future__ import annotations

import os
import re
import signal
from typing import Any

from . import systemd
from .clock import wall
from .devices import scan
from .ending import end_trees, why_alive
from .engines import is_engine, is_kernel, is_ray
from .gpus import Reading
from .holders import Landscape, find_holders
from .processes import Process, ancestors, read_processes
from .release_plan import Tree
from .store import Store
from .survey import uid_of
from .sweep import Sweep

WHOLE_SECONDS = 60
"""The deadline of the whole sweep; a model's own start limit is far above it."""
STOP_SECONDS = 10
"""Its leader is dead already: there is nothing left to drain."""


class OutOfTime(RuntimeError):
    """The deadline has come."""


def sweep_unit(store: Store, unit: str, gpus: str) -> int:
    """Ends leftovers of the unit on these GPUs (such as ``0,1``; empty for all); always 0."""
    signal.signal(signal.SIGALRM, _out_of_time)
    signal.alarm(WHOLE_SECONDS)
    try:
        wanted = frozenset(int(index) for index in re.findall(r"\d+", gpus))
        _sweep(unit, wanted)
    except Exception as problem:
        print(f"cutover: not everything is swept: {problem}", flush=True)
    finally:
        signal.alarm(0)
    return 0


def _sweep(unit: str, gpus: frozenset[int]) -> None:
    processes = read_processes()
    uid = uid_of(systemd.call("show", unit, "--property=User", "--value").strip() or "root")
    opened = scan(processes)
    seen = Landscape(
        processes, find_holders(processes, opened, None, Reading((), "not asked")), Reading(())
    )
    left = leftovers(seen, unit, uid, gpus, os.getpid())
    for process in left:
        print(f"cutover: ending pid {process.pid} ({process.title}), left behind", flush=True)
    ended = end_trees([Tree(process, (process,)) for process in left], STOP_SECONDS)
    for process in ended.alive:
        print(f"cutover: even SIGKILL does not end {why_alive(process)}", flush=True)
    summary = Sweep({uid}, wall()).finish().summary()
    if summary:
        print(f"cutover: {summary}", flush=True)


def leftovers(seen: Landscape, unit: str, uid: int, gpus: frozenset[int], me: int) -> list[Process]:
    """Processes that the unit's dead server has left, as a pure function.

    They hold one of the unit's GPUs, and sit in its control group, or are a worker of its user
    whose server is gone and who belongs to no other service.
    """
    own = seen.processes.get(me)
    spared = {me, *(p.pid for p in ancestors(own, seen.processes))} if own else {me}
    found = []
    for holder in seen.holders:
        process = holder.process
        if process.pid in spared or (gpus and not holder.gpus & gpus) or process.container:
            continue
        family = ancestors(process, seen.processes)
        kernel = any(is_kernel(one) for one in (process, *family))
        orphan = (
            process.uid == uid
            and len(process.argv) == 1
            and is_engine(process)
            and not is_ray(process)
            and not any(is_engine(one) for one in family if "::" not in one.title)
            and not process.unit.endswith(".service")
        )
        if process.unit == unit or (orphan and not kernel):
            found.append(process)
    return found


def _out_of_time(*_: Any) -> None:
    raise OutOfTime(f"it took longer than {WHOLE_SECONDS} s")
