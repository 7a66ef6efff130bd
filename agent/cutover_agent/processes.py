"""Processes as /proc shows them."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Optional

from .cgroup import cgroup_of, container_of, inside, unit_of

_SECRET = re.compile(r"--[\w.-]*(key|token|secret|password)[\w.-]*", re.I)
PAGE = 4096
"""/proc gives a page at a time; a larger buffer only costs its allocation."""


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
    """Path of its control group in systemd's own tree, as this host sees it."""
    uid: int = 0
    elsewhere: bool = False
    """Whether it lives in another pid namespace than this program."""
    threads: int = 1
    """A zombie leader counts as one beside its living threads."""

    @property
    def title(self) -> str:
        """The command line for people, cut to 120 characters, without the secrets in it."""
        return (" ".join(_masked(self.argv)) or f"[{self.name}]")[:120]

    @property
    def unit(self) -> str:
        """The systemd unit that holds it, or an empty text."""
        return unit_of(self.cgroup)

    @property
    def container(self) -> str:
        """The container that holds it, or an empty text."""
        return container_of(self.cgroup) or ("?" if self.elsewhere else "")

    @property
    def dead(self) -> bool:
        """Whether it is a zombie, and no thread of it lives on."""
        return self.state == "Z" and self.threads <= 1


def _masked(argv: Iterable[str]) -> Iterator[str]:
    secret = False
    for word in argv:
        option, equals, _ = word.partition("=")
        named = bool(_SECRET.fullmatch(option))
        yield "***" if secret else f"{option}=***" if named and equals else word
        secret = named and not equals


def parse_stat(text: str) -> tuple[str, str, int, int, int]:
    """Name, state, parent, start ticks and threads from /proc/PID/stat; a name may hold anything.

    A zombie leader counts among the threads.
    """
    name = text[text.index("(") + 1 : text.rindex(")")]
    rest = text[text.rindex(")") + 2 :].split()
    return name, rest[0], int(rest[1]), int(rest[19]), int(rest[17])


def read_process(pid: int, root: str = "/proc") -> Optional[Process]:
    """One process, or None when it is gone."""
    return _read(pid, _first_group(root), namespace_of("self"), root)


def read_processes(pids: Optional[Iterable[int]] = None) -> dict[int, Process]:
    """Every process by number; those that end meanwhile are left out."""
    first, own = _first_group("/proc"), namespace_of("self")
    found = (_read(pid, first, own) for pid in (all_pids() if pids is None else pids))
    return {process.pid: process for process in found if process}


def _read(pid: int, first: str, own: str, root: str = "/proc") -> Optional[Process]:
    base = f"{root}/{pid}"
    try:
        name, state, parent, start, threads = parse_stat(slurp(f"{base}/stat"))
        argv = slurp(f"{_speaker(base, pid, state, threads)}/cmdline").rstrip("\0")
        cgroup = inside(cgroup_of(slurp(f"{base}/cgroup")), first)
        uid = os.stat(base).st_uid
    except (FileNotFoundError, ProcessLookupError):
        return None
    words = tuple(argv.split("\0")) if argv else ()
    space = namespace_of(pid, root)
    elsewhere = bool(space and own and space != own)
    return Process(
        pid, start, parent, state, name, words, user_name(uid), cgroup, uid, elsewhere, threads
    )


def _speaker(base: str, pid: int, state: str, threads: int) -> str:
    """Where the command line is to be read: a zombie leader has none, its living threads do."""
    if state != "Z" or threads < 2:
        return base
    living = (name for name in os.listdir(f"{base}/task") if name != str(pid))
    return f"{base}/task/{next(living, pid)}"


def slurp(path: str) -> str:
    """A small file of /proc in few calls."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = part = os.read(handle, PAGE)
        while len(part) == PAGE:
            part = os.read(handle, PAGE)
            data += part
        return data.decode(errors="replace")
    finally:
        os.close(handle)


def namespace_of(pid: object, root: str = "/proc") -> str:
    """Name of a process's pid namespace; empty where it is not to be seen."""
    try:
        return os.readlink(f"{root}/{pid}/ns/pid")
    except OSError:
        return ""


def _first_group(root: str) -> str:
    try:
        return cgroup_of(slurp(f"{root}/1/cgroup"))
    except OSError:
        return ""


def all_pids() -> Iterator[int]:
    """Numbers of all processes that this one can see."""
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def ancestors(process: Process, among: Mapping[int, Process]) -> list[Process]:
    """Parent, grandparent and so on, nearest first."""
    line: list[Process] = []
    parent = among.get(process.parent)
    while parent and parent not in line:
        line.append(parent)
        parent = among.get(parent.parent)
    return line


def descendants(process: Process, among: Mapping[int, Process]) -> list[Process]:
    """Everything below a process, the process itself left out."""
    children: dict[int, list[Process]] = {}
    for other in among.values():
        children.setdefault(other.parent, []).append(other)
    found: list[Process] = []
    queue = [process]
    while queue:
        for child in children.get(queue.pop().pid, []):
            if child not in found and child != process:
                found.append(child)
                queue.append(child)
    return found


@cache
def user_name(uid: int) -> str:
    """A user's name, or the number where it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
