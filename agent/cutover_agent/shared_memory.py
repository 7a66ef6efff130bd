"""Stale shared memory: segments that a dead server left in /dev/shm."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

SHM = Path("/dev/shm")
PATTERNS = (
    # Python's multiprocessing: shared memory, heap, semaphores, those of joblib
    "psm_*",
    "pym-*",
    "sem.mp-*",
    "sem.loky-*",
    # PyTorch's tensors between processes
    "torch_*",
    # NCCL and NVSHMEM
    "nccl-*",
    "nvshmem*",
    # the engines
    "*vllm*",
    "*VLLM*",
    "sgl_*",
    "sglang*",
)
_KNOWN = re.compile("|".join(fnmatch.translate(pattern) for pattern in PATTERNS))


@dataclass(frozen=True)
class Segment:
    """One file in /dev/shm."""

    name: str
    device: int
    inode: int
    size: int
    """Bytes that it really takes."""
    changed: float
    """Seconds since the epoch."""
    uid: int = 0


def stale(
    segments: Iterable[Segment],
    used: InUse,
    stopped_at: float,
    uids: Collection[int],
) -> list[Segment]:
    """Segments of known kinds and of these users, older than the stop, that nobody has.

    The number in a name says nothing: the process of that number may be another one by now.
    """
    return [
        segment
        for segment in segments
        if segment.uid in uids
        and segment.changed <= stopped_at
        and not ({0, segment.uid} & used.hidden)
        and (segment.device, segment.inode) not in used.files
        and _KNOWN.match(segment.name)
    ]


def read_segments(folder: Path = SHM) -> list[Segment]:
    """The regular files directly in /dev/shm."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                if entry.is_file(follow_symlinks=False):
                    at = entry.stat(follow_symlinks=False)
                    changed = max(at.st_mtime, at.st_ctime)
                    size = at.st_blocks * 512
                    found.append(
                        Segment(entry.name, at.st_dev, at.st_ino, size, changed, at.st_uid)
                    )
            except FileNotFoundError:
                continue
    return found


@dataclass(frozen=True)
class InUse:
    """What live processes have of a folder of shared memory."""

    files: frozenset[tuple[int, int]]
    """Device and inode of what they map or have open."""
    hidden: frozenset[int] = frozenset()
    """Users of the processes that do not show what they have; theirs may be anything."""


def in_use(pids: Iterable[int], folder: Path = SHM) -> InUse:
    """What every live process maps or has open: one pass."""
    hidden: set[int] = set()
    device = folder.stat().st_dev
    mark = f"{folder}/".encode()
    used: set[tuple[int, int]] = set()
    for pid in pids:
        try:
            with open(f"/proc/{pid}/maps", "rb") as file:
                maps = file.read()
            if mark in maps:
                # address perms offset dev inode path: the path says which file system it is
                used.update(
                    (device, int(line.split()[4])) for line in maps.splitlines() if mark in line
                )
            for name in os.listdir(f"/proc/{pid}/fd"):
                path = f"/proc/{pid}/fd/{name}"
                if os.readlink(path).startswith(f"{folder}/"):
                    used.add((device, os.stat(path).st_ino))
        except PermissionError:
            # The first process of a container may be out of reach; it serves no model.
            if pid != 1:
                hidden.add(os.stat(f"/proc/{pid}").st_uid)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return InUse(frozenset(used), frozenset(hidden))


def free_share(folder: Path = SHM) -> float:
    """The part of the file system that is free, from 0 to 1."""
    at = os.statvfs(folder)
    return at.f_bavail / at.f_blocks if at.f_blocks else 1.0
