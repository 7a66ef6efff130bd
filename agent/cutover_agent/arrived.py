"""The environment that really arrives: what each process of a model has, against the declared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from . import requires
from .devices import scan
from .gpus import Reading
from .holders import find_holders
from .order import Order
from .processes import Process, read_processes

ALWAYS_TOLD = "NCCL_"
"""Variables of this prefix are told also where all is well: they decide over the speed."""
_ENV_START = 47
"""Place of the start of the environment in /proc/PID/stat, counted from the state."""


@dataclass(frozen=True)
class Arrived:
    """One process that holds a GPU."""

    process: Process
    variables: Optional[Mapping[str, str]]
    """None where they cannot be read, or were overwritten by a title."""
    spawned: bool = False
    """Started as a program of its own by another process of the unit, and no mere fork of it."""


@dataclass(frozen=True)
class Comparison:
    """What was found."""

    lines: tuple[str, ...]
    """One for each variable that is worth it: `NCCL_PROTO=LL in 9 of 9 processes`."""
    faults: tuple[str, ...]

    def evidence(self) -> dict[str, Any]:
        """For the outputs; what was not found is left out."""
        found = {"environment": list(self.lines), "environment_faults": list(self.faults)}
        return {name: lines for name, lines in found.items() if lines}


def compare(
    declared: Mapping[str, str], seen: Sequence[Arrived], set_by: Mapping[str, str]
) -> Comparison:
    """Compares every process; `set_by` names the file that sets a variable inside them.

    A variable that a file sets is not in the environment that a process was started with. But a
    child that is started as a program of its own has it from there, so it is checked as usual.
    """
    lines, faults = [], []
    for name, value in declared.items():
        known = [one for one in seen if one.variables is not None]
        right = [o for o in known if o.variables and o.variables.get(name) == value]
        absent = [o for o in known if name not in (o.variables or {})]
        excused = [o for o in absent if name in set_by and not o.spawned]
        contrary = [o for o in known if o not in right and o not in absent]
        told = [_contrary(name, value, o) for o in contrary]
        told += [f"{name}={value} is missing in {_who(o)}" for o in absent if o not in excused]
        if told or name.startswith(ALWAYS_TOLD):
            line = f"{name}={value} in {len(right)} of {len(seen)} processes"
            if excused:
                line += f", set by {set_by[name]} in {len(excused)}, hash ok"
            if len(known) < len(seen):
                line += f", unknown in {len(seen) - len(known)}"
            lines.append(line)
        faults += told
    return Comparison(tuple(lines), tuple(faults))


def _contrary(name: str, value: str, one: Arrived) -> str:
    return f"{name} is {(one.variables or {})[name]!r}, not {value!r}, in {_who(one)}"


def _who(one: Arrived) -> str:
    return f"pid {one.process.pid} ({one.process.title})"


def look(order: Order) -> Comparison:
    """Compares what runs on this host now with the order."""
    if not order.environment:
        return Comparison((), ())
    digests = requires.digests(order.files.requires)
    set_by = {
        name: Path(required.path).name
        for required in order.files.requires
        if digests[required.path] == required.sha256
        for name in required.sets
    }
    return compare(order.environment, processes_of(order.unit), set_by)


def processes_of(unit: str) -> list[Arrived]:
    """The processes of a unit that hold a GPU, with their environments."""
    processes = read_processes()
    mine = {pid: one for pid, one in processes.items() if one.unit == unit}
    return [
        Arrived(one.process, environment_of(one.process.pid), _spawned(one.process, mine))
        for one in find_holders(mine, scan(mine), None, Reading(()))
    ]


def environment_of(pid: int) -> Optional[dict[str, str]]:
    """What a process was started with; None where that cannot be read any more."""
    try:
        data = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None
    return parse(data)


def parse(data: bytes) -> Optional[dict[str, str]]:
    """Variables from /proc/PID/environ; None where a title has been written over them."""
    entries = data.rstrip(b"\0").split(b"\0")
    if not all(b"=" in entry for entry in entries):
        return None
    pairs = (entry.decode(errors="replace").partition("=") for entry in entries)
    return {name: value for name, _, value in pairs}


def _spawned(process: Process, mine: Mapping[int, Process]) -> bool:
    """Forks share the place of their environment with their parent; new programs do not."""
    return process.parent in mine and _place(process.pid) != _place(process.parent)


def _place(pid: int) -> str:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        return text.rpartition(")")[2].split()[_ENV_START]
    except (OSError, IndexError):
        return ""
