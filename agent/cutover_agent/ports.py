"""Who listens on a port."""

from __future__ import annotations

import os
import re
import socket
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Optional
from urllib.parse import urlsplit

from .holders import place_of
from .processes import Process
from .release_plan import ReleasePlan

LISTEN = "0A"
_SOCKET = re.compile(r"socket:\[(\d+)\]")


@dataclass(frozen=True)
class Listener:
    """A listening TCP socket."""

    address: str
    port: int
    inode: int
    process: Optional[Process] = None
    """None where no visible process has it open."""

    def describe(self) -> str:
        """One line for people."""
        if self.process is None:
            return f"port {self.port} is taken by a process that cannot be seen here"
        who = self.process
        return f"port {self.port} is taken by pid {who.pid} ({who.title}), {place_of(who)}"


def parse_listeners(text: str) -> list[Listener]:
    """Listening sockets in /proc/net/tcp or tcp6."""
    found = []
    for line in text.splitlines()[1:]:
        words = line.split()
        if len(words) > 9 and words[3] == LISTEN:
            address, port = words[1].split(":")
            found.append(Listener(_address(address), int(port, 16), int(words[9])))
    return found


def _address(word: str) -> str:
    numbers = [int(word[at : at + 8], 16) for at in range(0, len(word), 8)]
    packed = struct.pack(f"={len(numbers)}I", *numbers)
    return socket.inet_ntop(socket.AF_INET if len(numbers) == 1 else socket.AF_INET6, packed)


def in_the_way(url: str, listeners: Iterable[Listener]) -> list[Listener]:
    """Those that keep a server from the port of `url`, its own address as seen on the host.

    A loopback address may stand for every address, so anybody on that port is in its way.
    """
    parts = urlsplit(url)
    wanted = parts.hostname or ""
    everywhere = wanted in ("127.0.0.1", "::1", "localhost")
    return [
        one
        for one in listeners
        if one.port == parts.port and (everywhere or one.address in (wanted, "0.0.0.0", "::"))
    ]


def problems(
    found: Iterable[Listener], plan: ReleasePlan, processes: Mapping[int, Process]
) -> list[str]:
    """A sentence for each listener that the release will not end."""
    lines = []
    for one in found:
        process = one.process
        ended = process and (process.unit in plan.units or process.pid in plan.signalled)
        if not ended:
            lines.append(
                f"{one.describe()}, and the release does not end it: end it, then try again"
            )
    return sorted(set(lines))


def read_listeners(url: str, processes: Mapping[int, Process]) -> list[Listener]:
    """Who listens on the port of `url` now; a socket that several have open counts for each."""
    taken = in_the_way(url, _all())
    owners = _owners({one.inode for one in taken}, processes) if taken else {}
    found = []
    for one in taken:
        pids = owners.get(one.inode, [])
        found += [Listener(one.address, one.port, one.inode, processes[pid]) for pid in pids]
        if not pids:
            found.append(one)
    return found


def urls_of(pids: Iterable[int]) -> list[str]:
    """Where processes listen, as this host can ask them; every address becomes loopback."""
    listeners = _all()
    owned = _owners({one.inode for one in listeners}, pids)
    hosts = {"0.0.0.0": "127.0.0.1", "::": "::1"}
    found = []
    for one in listeners:
        if one.inode in owned:
            host = hosts.get(one.address, one.address)
            found.append(
                f"http://[{host}]:{one.port}" if ":" in host else f"http://{host}:{one.port}"
            )
    return found


def _all() -> list[Listener]:
    found = []
    for name in ("tcp", "tcp6"):
        try:
            with open(f"/proc/net/{name}") as file:
                found += parse_listeners(file.read())
        except OSError:  # no IPv6
            continue
    return found


def _owners(inodes: set[int], pids: Iterable[int]) -> dict[int, list[int]]:
    owners: dict[int, list[int]] = {}
    for pid in pids:
        try:
            for name in os.listdir(f"/proc/{pid}/fd"):
                match = _SOCKET.fullmatch(os.readlink(f"/proc/{pid}/fd/{name}"))
                if match and int(match.group(1)) in inodes:
                    owners.setdefault(int(match.group(1)), []).append(pid)
        except OSError:
            continue
    return owners
