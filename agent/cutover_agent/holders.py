"""Who holds a GPU: the processes' own devices, and nvidia-smi's list, brought together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Optional

from .cgroup import session_of
from .devices import Devices
from .gpus import Reading, Row
from .processes import Process

SLACK_MIB = 128
"""What a card may report beyond its list: a driver's share for a context, 9 MiB for one process
of 1.5 GiB on an H200. A CUDA context takes more than this, so nobody hides in it."""


@dataclass(frozen=True)
class Holder:
    """A process that has a GPU open, or that nvidia-smi lists."""

    process: Process
    gpus: frozenset[int]
    """Indices of the GPUs."""
    mib: Optional[int]
    """Device memory it holds on all of them; None when nobody says."""
    shares: Mapping[int, int] = field(default_factory=dict)
    """MiB by GPU, where the list tells."""
    mig: bool = False
    """Whether it uses a slice of a partitioned GPU."""

    def describe(self) -> str:
        """One line for people: number, title, owner, GPUs, memory."""
        process = self.process
        memory = "memory unknown" if self.mib is None else f"{self.mib} MiB"
        gpus = ", ".join(str(index) for index in sorted(self.gpus)) or "?"
        place = place_of(process)
        return f"pid {process.pid} ({process.title}), {process.user}, {place}, GPU {gpus}, {memory}"


def place_of(process: Process) -> str:
    """Where a process belongs, for people: container, login session, unit, or none."""
    if process.container:
        named = process.container != "?"
        return f"container {process.container[:12]}" if named else "another pid namespace"
    return session_of(process.cgroup) or process.unit or "no unit"


@dataclass(frozen=True)
class Service:
    """A loaded service, as systemd describes it."""

    name: str
    main_pid: int = 0
    active: str = "inactive"
    enabled: str = ""
    restart: str = "no"
    user: str = "root"
    command: tuple[str, ...] = ()
    """The first words of its ExecStart=, program first."""
    queued: bool = False
    """Whether systemd is about to do something with it."""

    @property
    def runs(self) -> bool:
        """Whether it may hold anything: all but inactive or failed may, and what is about to start
        will.
        """
        return self.queued or self.active not in ("inactive", "failed")


@dataclass(frozen=True)
class Landscape:
    """Everything that a release is planned from."""

    processes: Mapping[int, Process]
    holders: tuple[Holder, ...]
    reading: Reading
    services: Mapping[str, Service] = field(default_factory=dict)
    """Loaded services by name."""


def is_ours(
    rows: tuple[Row, ...], seen: Mapping[int, Process], opened: Mapping[int, Devices]
) -> bool:
    """Whether the list speaks of the processes that are visible here.

    Inside a container it may hold the numbers of the host outside, which mean nothing here, or
    by chance mean somebody else. A zombie may be listed, though it has nothing open any more.
    """
    return all(r.pid in opened or (r.pid in seen and seen[r.pid].state == "Z") for r in rows)


def find_holders(
    processes: Mapping[int, Process],
    opened: Mapping[int, Devices],
    rows: Optional[tuple[Row, ...]],
    reading: Reading,
) -> tuple[Holder, ...]:
    """Every holder, by pid; a list that is missing or foreign makes memory unknown, never none."""
    known = rows if rows is not None and is_ours(rows, processes, opened) else None
    pids = set(opened) | {row.pid for row in known or ()}
    found = []
    for pid in sorted(pids & set(processes)):
        devices = opened.get(pid, Devices(frozenset()))
        shares = _shares(pid, known, reading)
        gpus = devices.gpus | frozenset(shares)
        mib = _memory(pid, gpus, devices, known, reading)
        slices = devices.mig or any(r.pid == pid and r.uuid.startswith("MIG-") for r in known or ())
        found.append(Holder(processes[pid], gpus, mib, shares, slices))
    return tuple(found)


def _shares(pid: int, rows: Optional[tuple[Row, ...]], reading: Reading) -> dict[int, int]:
    shares: dict[int, int] = {}
    for row in rows or ():
        index = reading.index_of.get(row.uuid)
        if row.pid == pid and index is not None:
            shares[index] = shares.get(index, 0) + (row.mib or 0)
    return shares


def _memory(
    pid: int,
    gpus: frozenset[int],
    devices: Devices,
    rows: Optional[tuple[Row, ...]],
    reading: Reading,
) -> Optional[int]:
    """A process's device memory in MiB; None where nothing proves how much it is."""
    if pid in [row.pid for row in rows or ()]:
        mine = [row.mib for row in rows or () if row.pid == pid]
        return None if None in mine else sum(mib for mib in mine if mib is not None)
    if not devices.computes:
        return 0
    if reading.problem:
        return None
    listed = dict.fromkeys(reading.used, 0)
    for row in rows or ():
        index = reading.index_of.get(row.uuid)
        if row.mib is None or index is None:
            rows = None
        else:
            listed[index] += row.mib
    slack = SLACK_MIB if rows else 0
    adds_up = all(
        reading.used.get(index, 1) - (listed.get(index, 0) if rows else 0) <= slack
        for index in gpus
    )
    return 0 if adds_up else None


def unseen(seen: Landscape, idle_mib: int = 0) -> dict[int, int]:
    """MiB by GPU that no visible process accounts for: used by an unseen process, not free."""
    found = {}
    for index, used in seen.reading.used.items():
        holders = [holder for holder in seen.holders if index in holder.gpus and holder.mib != 0]
        told = sum(holder.shares.get(index, 0) for holder in holders)
        complete = all(index in holder.shares and holder.mib is not None for holder in holders)
        spare = max(idle_mib, SLACK_MIB) if holders else idle_mib
        if complete and used - told > spare:
            found[index] = used - told
    return found
