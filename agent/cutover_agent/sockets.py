"""Stale IPC sockets: files in /tmp to which a dead server listened."""

from __future__ import annotations

import os
import re
import socket
import stat
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

TMP = Path("/tmp")
_KNOWN = re.compile(
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"  # vLLM names its ZeroMQ sockets by a UUID
    r"|tmp[a-z0-9_]{8}"  # SGLang by a temporary file
    r"|(vllm|VLLM|sgl|sglang)[._-].*"
)


@dataclass(frozen=True)
class Socket:
    """One socket file."""

    path: str
    inode: int
    changed: float
    """Seconds since the epoch."""
    uid: int


def stale_sockets(
    found: Iterable[Socket], listening: Collection[str], stopped_at: float, uids: Collection[int]
) -> list[Socket]:
    """Sockets of known names and of these users, older than the stop, without a listener."""
    return [
        one
        for one in found
        if one.uid in uids
        and one.changed <= stopped_at
        and one.path not in listening
        and _KNOWN.fullmatch(one.path.rpartition("/")[2])
    ]


def read_sockets(folder: Path = TMP) -> list[Socket]:
    """The real sockets directly in a folder; a file of such a name is none."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                at = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            if stat.S_ISSOCK(at.st_mode):
                changed = max(at.st_mtime, at.st_ctime)
                found.append(Socket(entry.path, at.st_ino, changed, at.st_uid))
    return found


def listened() -> frozenset[str]:
    """Paths of the sockets that somebody in this network namespace has bound."""
    with open("/proc/net/unix", errors="replace") as file:
        return frozenset(
            line.rstrip("\n").split(" ", 7)[-1].lstrip() for line in file if "/" in line
        )


def nobody_answers(path: str) -> bool:
    """Whether a connection is refused: proof, for other network namespaces too."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.setblocking(False)
        try:
            client.connect(path)
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False
