"""Stops units, all at once, and says what was out of the ordinary about it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from . import systemd
from .clock import Deadline, wait_for
from .ending import await_death
from .processes import Process
from .release_plan import Tree
from .systemd import UnitState, Unkillable

LOOK_SECONDS = 0.25
"""How often systemd is asked whether units are down whose processes still live."""


def begin(units: Sequence[str]) -> None:
    """Asks systemd to stop the units; waits for none of them."""
    if units:
        systemd.call("stop", "--no-block", *units)


def await_processes(units: Collection[str], processes: Sequence[Process], at: Deadline) -> bool:
    """Waits until these processes of the units are dead, and comes back in that very moment.

    False where they are not: time is up, or the units are down and have left some of them there.
    """
    while not at.passed:
        if await_death(processes, Deadline(min(LOOK_SECONDS, at.left))):
            return True
        if all(state.down for state in systemd.states(list(units)).values()):
            return False
    return False


def finish(units: Sequence[str], deadline: Deadline, kill: float) -> list[str]:
    """Waits until the units are inactive; returns a sentence about each.

    At the deadline their processes are killed, whatever the units themselves say about it. Raises
    Unkillable when even that does not end one within `kill` seconds.
    """
    states = _await_down(units, deadline)
    late = [unit for unit, state in states.items() if not state.down]
    for unit in late:
        systemd.call("kill", "--signal=SIGKILL", unit, check=False)
    if late:
        states = _await_down(units, Deadline(kill))
    lines = []
    for unit, state in states.items():
        if not state.down:
            raise Unkillable(
                f"{unit} does not end even after SIGKILL: a process of it hangs in the kernel, "
                "reset the GPU (nvidia-smi --gpu-reset) or reboot the host"
            )
        slow = unit in late or state.result == "timeout"
        how = f"did not stop within {deadline.seconds:.0f} s and was killed"
        lines.append(f"{unit} {how}" if slow else f"{unit} is stopped")
    return lines


def _await_down(units: Sequence[str], deadline: Deadline) -> dict[str, UnitState]:
    """How the units are once all of them are down, or time is up: one question as a rule, because
    nothing serves meanwhile.
    """
    seen: dict[str, UnitState] = {}

    def down() -> bool:
        seen.update(systemd.states(list(units)))
        return all(state.down for state in seen.values())

    wait_for(down, deadline)
    return seen


def outliving(units: Collection[str], processes: Mapping[int, Process]) -> tuple[Tree, ...]:
    """What is left in the control groups of stopped units, each process a tree of its own.

    systemd leaves it there where somebody changed the unit's KillMode=.
    """
    left = (p for p in processes.values() if p.unit in units and not p.dead)
    return tuple(Tree(process, (process,)) for process in left)
