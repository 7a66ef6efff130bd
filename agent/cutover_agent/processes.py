"""Processes as /proc shows them."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

_UNIT = re.compile(r"^[^/]+\.(service|scope|slice)$")


@dataclass(frozen=True)
class Process:
    """One process, with what tells it from a later one of the same number."""

    pid: int
    start: int
    """Clock ticks after boot at which it started."""
    parent: int
    state: str
    """One letter, as in /proc/PID/stat: R, S, D, Z, ..."""
    name: str
    """The kernel's short name (comm)."""
    argv: tuple[str, ...]
    """Command line; one element when the process has written a title over it."""
    user: str
    cgroup: str
    """Path of its control group in systemd's own tree."""

    @property
    def title(self) -> str:
        """The command line for people, cut to 120 characters."""
        return (" ".join(self.argv) or f"[{self.name}]")[:120]

    @property
    def unit(self) -> str:
        """The innermost systemd unit that holds it, or an empty text."""
        return unit_of(self.cgroup)


def unit_of(cgroup: str) -> str:
    """The unit that owns a control group: its last service or scope, else its last slice.

    Inside `user@.service` the units of the user's own manager come after it and are not this
    manager's, so the first service or scope of the path counts.
    """
    names = [part for part in cgroup.split("/") if _UNIT.match(part)]
    for name in names:
        if not name.endswith(".slice"):
            return name
    return names[-1] if names else ""


def cgroup_of(text: str) -> str:
    """The path in /proc/PID/cgroup that systemd keeps: pure v2, hybrid or v1.

    On a hybrid or v1 host the `name=systemd` line has the units; the `0::` line may be bare.
    """
    unified = ""
    for line in text.splitlines():
        number, controllers, path = line.split(":", 2)
        if controllers == "name=systemd":
            return path
        if number == "0":
            unified = path
    return unified


def parse_stat(text: str) -> tuple[str, str, int, int]:
    """Name, state, parent and start ticks from /proc/PID/stat; a name may hold anything."""
    name = text[text.index("(") + 1 : text.rindex(")")]
    rest = text[text.rindex(")") + 2 :].split()
    return name, rest[0], int(rest[1]), int(rest[19])


def read_process(pid: int, root: Path = Path("/proc")) -> Optional[Process]:
    """One process, or None when it is gone."""
    folder = root / str(pid)
    try:
        name, state, parent, start = parse_stat((folder / "stat").read_text(errors="replace"))
        argv = (folder / "cmdline").read_bytes().rstrip(b"\0").decode(errors="replace")
        cgroup = _inside(cgroup_of((folder / "cgroup").read_text()), root)
        user = _user(folder.stat().st_uid)
    except (FileNotFoundError, ProcessLookupError):
        return None
    words = tuple(argv.split("\0")) if argv else ()
    return Process(pid, start, parent, state, name, words, user, cgroup)


def _inside(cgroup: str, root: Path) -> str:
    """A control group's path without what lies above this host, which may be a container."""
    top = cgroup_of((root / "1" / "cgroup").read_text()).removesuffix("/init.scope")
    return cgroup.removeprefix(top) if top != "/" else cgroup


def all_pids(root: Path = Path("/proc")) -> Iterator[int]:
    """Numbers of all processes that this one can see."""
    return (int(name) for name in os.listdir(root) if name.isdigit())


def read_processes() -> dict[int, Process]:
    """Every process by number; those that end meanwhile are left out."""
    found = (read_process(pid) for pid in all_pids())
    return {process.pid: process for process in found if process}


def ancestors(process: Process, among: dict[int, Process]) -> list[Process]:
    """Parent, grandparent and so on, nearest first."""
    line: list[Process] = []
    parent = among.get(process.parent)
    while parent and parent not in line:
        line.append(parent)
        parent = among.get(parent.parent)
    return line


def descendants(process: Process, among: dict[int, Process]) -> list[Process]:
    """Everything below a process, the process itself left out."""
    return [other for other in among.values() if process in ancestors(other, among)]


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
