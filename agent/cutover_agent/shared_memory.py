"""Stale shared memory: segments that a dead server left in /dev/shm."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .processes import all_pids

SHM = Path("/dev/shm")
PATTERNS = (
    "psm_*",  # multiprocessing.shared_memory
    "sem.mp-*",  # multiprocessing's semaphores
    "sem.loky-*",
    "nccl-*",
    "*vllm*",
    "*VLLM*",
    "sgl_*",
    "sglang*",
)


@dataclass(frozen=True)
class Segment:
    """One file in /dev/shm."""

    name: str
    device: int
    inode: int
    size: int
    changed: float
    """Seconds since the epoch."""


@dataclass(frozen=True)
class Swept:
    """What a sweep removed."""

    count: int
    size: int
    """Bytes."""


def stale(
    segments: Iterable[Segment], in_use: frozenset[tuple[int, int]], stopped_at: float
) -> list[Segment]:
    """The segments that no process has mapped or open, of known kinds, older than the stop."""
    return [
        segment
        for segment in segments
        if any(fnmatch.fnmatchcase(segment.name, pattern) for pattern in PATTERNS)
        and (segment.device, segment.inode) not in in_use
        and segment.changed <= stopped_at
    ]


def sweep(stopped_at: float) -> Swept:
    """Removes what is stale now."""
    gone = stale(read_segments(), segments_in_use(), stopped_at)
    for segment in gone:
        (SHM / segment.name).unlink(missing_ok=True)
    return Swept(len(gone), sum(segment.size for segment in gone))


def read_segments() -> list[Segment]:
    """The regular files directly in /dev/shm."""
    found = []
    with os.scandir(SHM) as entries:
        for entry in entries:
            try:
                if entry.is_file(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    times = max(status.st_mtime, status.st_ctime)
                    size = status.st_blocks * 512
                    found.append(Segment(entry.name, status.st_dev, status.st_ino, size, times))
            except FileNotFoundError:
                continue
    return found


def segments_in_use() -> frozenset[tuple[int, int]]:
    """Device and inode of every file of /dev/shm that a live process maps or has open."""
    device = SHM.stat().st_dev
    used: set[tuple[int, int]] = set()
    for pid in all_pids():
        try:
            with open(f"/proc/{pid}/maps", errors="replace") as maps:
                # address perms offset dev inode path: the path says which file system it is
                used.update((device, int(line.split()[4])) for line in maps if "/dev/shm/" in line)
            for entry in os.scandir(f"/proc/{pid}/fd"):
                if os.readlink(entry.path).startswith("/dev/shm/"):
                    used.add((device, os.stat(entry.path).st_ino))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return frozenset(used)
