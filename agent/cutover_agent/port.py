"""Who listens on the port that a model is to serve on."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from .processes import Process
from .release_plan import ReleasePlan

_LISTEN = "0A"


def reasons(
    port: int, listeners: Mapping[int, Process], unseen: int, plan: ReleasePlan, ours: Iterable[str]
) -> list[str]:
    """Why the port will not be free: somebody listens on it whom the release does not end.

    `unseen` counts the listeners whose process cannot be found.
    """
    ended = {process.pid for tree in plan.end for process in (tree.root, *tree.members)}
    units = {*ours, *plan.stop}
    told = [
        f"port {port} is taken by pid {pid} ({process.title}, {process.user}), which is not "
        "ended: stop it, or choose another listen.port"
        for pid, process in sorted(listeners.items())
        if pid not in ended and process.unit not in units
    ]
    if unseen and not listeners:
        told.append(f"port {port} is taken by a process that cannot be seen here: free it")
    return told


def port_of(url: str) -> int:
    """The port in a server's address."""
    return urlsplit(url).port or 80


def sockets(port: int, tables: Iterable[str]) -> set[str]:
    """Inodes of the sockets that listen on a port, from texts as in /proc/net/tcp."""
    found = set()
    for table in tables:
        for line in table.splitlines()[1:]:
            part = line.split()
            if part[3] == _LISTEN and int(part[1].rpartition(":")[2], 16) == port:
                found.add(part[9])
    return found


def look(port: int, processes: Mapping[int, Process]) -> tuple[dict[int, Process], int]:
    """Processes that listen on a port now, and how many sockets belong to nobody who is seen."""
    tables = [Path(f"/proc/net/{name}") for name in ("tcp", "tcp6")]
    wanted = sockets(port, [table.read_text() for table in tables if table.exists()])
    if not wanted:
        return {}, 0
    owners: dict[int, Process] = {}
    seen: set[str] = set()
    for pid, process in processes.items():
        mine = wanted & _sockets_of(pid)
        if mine:
            owners[pid] = process
            seen |= mine
    return owners, len(wanted - seen)


def _sockets_of(pid: int) -> set[str]:
    found = set()
    try:
        for entry in os.scandir(f"/proc/{pid}/fd"):
            match = re.match(r"socket:\[(\d+)\]", os.readlink(entry.path))
            if match:
                found.add(match[1])
    except OSError:
        pass
    return found
