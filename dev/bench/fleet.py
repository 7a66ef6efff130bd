"""Practice hosts, and stacks of the real program on them, for as long as a run takes."""

from __future__ import annotations

import json
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from sandbox import Host, start
from tests.acceptance.stack import ROOT, Stack, settings

AT_A_TIME = 2
"""Hosts that boot side by side."""
INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")
WATCHERS = 512
"""A host takes 6 of this machine's, of which there may be no more than 128."""
CATALOGUE = sorted(path.stem for path in (ROOT / "deployments").glob("*.yaml"))
ACTIVE = "minimax-m25"


class Fleet:
    """Boots hosts when they are wanted; all are gone at the end."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="cutover-bench-", dir="/var/tmp"))
        self._open = ExitStack()
        before = INOTIFY.read_text()
        if int(before) < WATCHERS:
            INOTIFY.write_text(str(WATCHERS))
            self._open.callback(INOTIFY.write_text, before)
        self._hosts: dict[str, Host] = {}
        self._stacks: dict[int, Stack] = {}

    def __enter__(self) -> Fleet:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._open.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def host(self, name: str) -> Host:
        """The host of that name, up, with engines that load in a second."""
        if name not in self._hosts:
            host = self._open.enter_context(start(name, state=self.folder / "hosts"))
            host.write("/etc/practice/engine.json", json.dumps({"load_seconds": 1.0}))
            self._hosts[name] = host
        return self._hosts[name]

    def hosts(self, count: int) -> list[Host]:
        """So many hosts."""
        self.host("box1")
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            return list(pool.map(self.host, [f"box{number + 1}" for number in range(count)]))

    def stack(self, count: int) -> Stack:
        """The whole catalogue on so many hosts, up, facts on."""
        if count not in self._stacks:
            made = self.new_stack(f"stack{count}")
            made.seconds = 60.0 * (1 + count)
            hosts = {host.name: settings(host) for host in self.hosts(count)}
            made.configure(active=ACTIVE, parallel=True, hosts=hosts)
            made.up()
            self._stacks[count] = made
        stack = self._stacks[count]
        # Another stack may have been up on some of these hosts meanwhile.
        stack.configure(active=ACTIVE, facts=True)
        stack.up()
        return stack

    def new_stack(self, name: str) -> Stack:
        """A stack of the whole catalogue that is not yet up."""
        folder = self.folder / name
        folder.mkdir(parents=True)
        return Stack(folder, catalogue=CATALOGUE)
