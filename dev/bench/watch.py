"""Watches a switch from outside the host, and takes nobody's word for it.

Two things count: the processes of the engines as this machine's kernel shows them, and what the
model's port answers.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import select
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import TracebackType

from sandbox import Host, cgroups

TICK_SECONDS = 0.005
ASK_SECONDS = 0.02
SERVICES = "system.slice"
ENGINE = re.compile(r"/opt/(vllm|sglang)/bin/python3\b|VLLM::|sglang::")


@dataclass
class Watch:
    """Notes when the old engine's last process died, when the new one's first was exec'd, and
    when the port answered last for the old and first for the new; seconds of one clock.
    """

    host: Host
    died: float = 0.0
    executed: float = 0.0
    answered_last: float = 0.0
    answered_first: float = 0.0
    took: float = 0.0
    """Seconds of the whole command that made the switch."""
    _over: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    @property
    def dead_to_exec(self) -> float:
        """Seconds from the death of the last old process to the exec of the new one."""
        return self.executed - self.died

    @property
    def nothing_served(self) -> float:
        """Seconds from the last answer of the old model to the first of the new, load included."""
        return self.answered_first - self.answered_last

    @property
    def before_load(self) -> float:
        """The part of that before the new engine runs."""
        return self.executed - self.answered_last

    def __enter__(self) -> Watch:
        old, model = engines(self.host), served(self.host)
        assert old and model, "nothing serves before the switch"
        for act in (lambda: self._follow_processes(old), lambda: self._ask(model)):
            self._threads.append(threading.Thread(target=act, daemon=True))
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        deadline = time.monotonic() + (0 if error else 120)
        while not (self.died and self.executed and self.answered_first):
            if time.monotonic() > deadline:
                break
            time.sleep(ASK_SECONDS)
        self._over.set()
        for thread in self._threads:
            thread.join()
        assert error or (self.died and self.executed and self.answered_first), "no switch was seen"

    def _follow_processes(self, old: set[int]) -> None:
        handles = {os.pidfd_open(pid): pid for pid in old}
        ends = select.poll()
        for handle in handles:
            ends.register(handle, select.POLLIN)
        try:
            while not self._over.is_set() and (handles or not self.executed):
                for handle, _ in ends.poll(TICK_SECONDS * 1000):
                    self.died = time.monotonic()
                    ends.unregister(handle)
                    os.close(handle)
                    del handles[handle]
                if not handles:
                    time.sleep(TICK_SECONDS)
                if not self.executed and engines(self.host) - old:
                    self.executed = time.monotonic()
        finally:
            for handle in handles:
                os.close(handle)

    def _ask(self, old: str) -> None:
        while not self._over.is_set() and not self.answered_first:
            asked = time.monotonic()
            model = served(self.host)
            if model == old:
                self.answered_last = asked
            elif model:
                self.answered_first = time.monotonic()
            time.sleep(ASK_SECONDS)


def engines(host: Host) -> set[int]:
    """The pids, here, of the host's processes that an engine consists of."""
    found = set()
    for group in _service_groups(host):
        with suppress(OSError):  # a unit or a process that ends meanwhile
            for pid in map(int, (group / "cgroup.procs").read_text().split()):
                if ENGINE.match(_command_line(pid)):
                    found.add(pid)
    return found


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def _service_groups(host: Host) -> list[Path]:
    """The control groups of the host's model units that exist now."""
    services = _services_of(host.group)
    return [each for kind in ("vllm-*", "sglang-*") for each in services.glob(kind)]


@cache
def _services_of(group: str) -> Path:
    """Where the host's systemd keeps the groups of its services."""
    found = [each for root in cgroups.hierarchies() for each in (root / group).rglob(SERVICES)]
    return found[0]


def served(host: Host) -> str:
    """The model that the port lists now; empty where nothing answers."""
    connection = http.client.HTTPConnection(host.address, 8000, timeout=2)
    try:
        connection.request("GET", "/v1/models")
        answer = connection.getresponse()
        text = answer.read()
        return str(json.loads(text)["data"][0]["id"]) if answer.status == 200 else ""
    except (OSError, http.client.HTTPException, ValueError):
        return ""
    finally:
        connection.close()
