"""Who holds a GPU: open descriptors and mappings of the devices, and nvidia-smi's list."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from .gpus import Reading, Row
from .processes import Process, read_processes

_DEVICE = re.compile(r"/dev/nvidia(\d+)")


@dataclass(frozen=True)
class Holder:
    """A process that has a GPU open."""

    process: Process
    gpus: frozenset[int]
    """Indices of the GPUs whose device it has open or mapped."""
    mib: Optional[int]
    """Device memory it holds on all of them; None when nobody says."""
    contained: bool = False
    """It lives in a container or another pid namespace."""

    def describe(self) -> str:
        """One line for people: number, title, owner, GPUs, memory."""
        process = self.process
        memory = "memory unknown" if self.mib is None else f"{self.mib} MiB"
        gpus = ", ".join(str(index) for index in sorted(self.gpus)) or "?"
        place = process.unit or "no unit"
        return f"pid {process.pid} ({process.title}), {process.user}, {place}, GPU {gpus}, {memory}"


@dataclass(frozen=True)
class Landscape:
    """Everything that a release is planned from."""

    processes: dict[int, Process]
    holders: tuple[Holder, ...]
    reading: Reading
    main_pids: dict[str, int]
    """Main process of each loaded service that has one."""


def memory_of(pid: int, rows: Optional[Iterable[Row]], reading: Reading) -> Optional[int]:
    """A process's device memory in MiB; None where the list does not answer for it.

    A list that accounts for less than the cards report leaves somebody out (the box may be a
    container), so a missing row means 0 only when the list adds up.
    """
    if rows is None:
        return None
    rows = list(rows)
    mine = [row.mib for row in rows if row.pid == pid]
    if mine:
        return None if None in mine else sum(mib for mib in mine if mib is not None)
    if any(row.mib is None for row in rows):
        return None
    listed = sum(row.mib for row in rows if row.mib is not None)
    return 0 if not reading.problem and listed >= reading.total_mib else None


def devices_of(pid: int) -> frozenset[int]:
    """GPU indices that a process has open or mapped, looking at every thread.

    A zombie leader whose threads live shows its descriptors only under task/. GPUs are matched by
    path: a device number can be anything in a container.
    """
    found: set[str] = set()
    base = Path(f"/proc/{pid}")
    try:
        for task in _tables(base):
            for entry in os.scandir(task / "fd"):
                found.add(_link(entry.path))
            with open(task / "maps", errors="replace") as maps:
                found.update(line.split()[-1] for line in maps if "/dev/nvidia" in line)
    except (FileNotFoundError, ProcessLookupError):
        pass
    matches = filter(None, (_DEVICE.fullmatch(path) for path in found))
    return frozenset(int(match.group(1)) for match in matches)


def find_holders(
    processes: dict[int, Process], rows: Optional[Iterable[Row]], reading: Reading
) -> tuple[Holder, ...]:
    """Every process that has a GPU open, this one's own view of the host."""
    known = None if rows is None else list(rows)
    own = _namespace(os.getpid())
    found = []
    for pid, process in processes.items():
        gpus = devices_of(pid)
        if gpus:
            contained = _namespace(pid) not in ("", own) or is_container(process.cgroup)
            found.append(Holder(process, gpus, memory_of(pid, known, reading), contained))
    return tuple(found)


def is_container(cgroup: str) -> bool:
    """Whether a control group is that of a container engine."""
    return bool(re.search(r"docker|libpod|kubepods|containerd|lxc|machine\.slice|nspawn", cgroup))


def look(reading: Reading, rows: Optional[Iterable[Row]], main_pids: dict[str, int]) -> Landscape:
    """The landscape as it is now."""
    processes = read_processes()
    return Landscape(processes, find_holders(processes, rows, reading), reading, main_pids)


def _tables(base: Path) -> list[Path]:
    """The leader's tables, or those of its threads where the leader is a zombie."""
    try:
        os.listdir(base / "fd")
        if (base / "stat").read_text(errors="replace").rpartition(")")[2].split()[0] != "Z":
            return [base]
    except PermissionError:
        pass
    return [base / "task" / name for name in os.listdir(base / "task")]


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _namespace(pid: int) -> str:
    return _link(f"/proc/{pid}/ns/pid")
