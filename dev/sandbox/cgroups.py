"""A control group per practice host, so that the systemd inside has a tree of its own."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Sequence
from pathlib import Path


def hierarchies() -> list[Path]:
    """Where systemd keeps its groups: the v2 tree, and the named v1 tree if there is one."""
    found = []
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, folder, kind, options, *_ = line.split()
        if kind == "cgroup2" or "name=systemd" in options.split(","):
            found.append(Path(folder))
    return found


def join(group: str) -> None:
    """Put this process into the group, which is made where it is missing."""
    for hierarchy in hierarchies():
        (hierarchy / group).mkdir(parents=True, exist_ok=True)
        (hierarchy / group / "cgroup.procs").write_text(str(os.getpid()))


def joining(pid: int, argv: Sequence[str]) -> list[str]:
    """The command line that runs argv in the groups where that process is.

    A shell joins them, not this process between fork and exec: a fork of a program that has
    threads (gRPC's, say) may abort.
    """
    named = (line.split(":", 2) for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines())
    paths = {controllers: path for _, controllers, path in named}
    joins = ""
    for hierarchy in hierarchies():
        v1 = (hierarchy / "release_agent").exists()
        group = hierarchy / paths["name=systemd" if v1 else ""].lstrip("/")
        joins += f"echo $$ >{shlex.quote(str(group / 'cgroup.procs'))}; "
    return ["sh", "-c", f'{joins}exec "$@"', "sh", *argv]


def members(group: str) -> set[int]:
    """The processes in the group and in all below it."""
    pids: set[int] = set()
    for hierarchy in hierarchies():
        for procs in (hierarchy / group).rglob("cgroup.procs"):
            pids.update(map(int, procs.read_text().split()))
    return pids


def remove(group: str, seconds: float = 5.0) -> None:
    """Remove an emptied group with all below it; the kernel may take a moment to see it empty."""
    deadline = time.monotonic() + seconds
    for hierarchy in hierarchies():
        while (hierarchy / group).is_dir():
            try:
                for folder, _, _ in os.walk(hierarchy / group, topdown=False):
                    os.rmdir(folder)
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
