"""Who listens on a port of this host."""

from __future__ import annotations

import os
import re
from pathlib import Path

from .processes import Process, read_processes

_LISTEN = "0A"


def listening_inodes(port: int, root: Path = Path("/proc/net")) -> frozenset[str]:
    """Inodes of the sockets that listen on a TCP port, over IPv4 and IPv6."""
    found = set()
    for name in ("tcp", "tcp6"):
        try:
            rows = (root / name).read_text().splitlines()[1:]
        except FileNotFoundError:  # no IPv6
            continue
        for row in rows:
            columns = row.split()
            if columns[3] == _LISTEN and int(columns[1].rpartition(":")[2], 16) == port:
                found.add(columns[9])
    return frozenset(found)


def holders_of(inodes: frozenset[str]) -> list[Process]:
    """Processes that have one of these sockets open."""
    wanted = {f"socket:[{inode}]" for inode in inodes}
    return [p for p in read_processes().values() if wanted & _sockets(p.pid)]


def stranger(port: int, unit: str) -> str:
    """Who listens on a port in place of a unit; empty where the unit does, or nobody."""
    holders = holders_of(listening_inodes(port))
    if not holders or any(holder.unit == unit for holder in holders):
        return ""
    first = holders[0]
    return f"pid {first.pid} ({first.title}), {first.unit or 'no unit'}"


def _sockets(pid: int) -> set[str]:
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return set()
    return {link for link in (_link(f"/proc/{pid}/fd/{name}") for name in names) if link}


def _link(path: str) -> str:
    try:
        target = os.readlink(path)
    except OSError:
        return ""
    return target if re.match(r"socket:", target) else ""
