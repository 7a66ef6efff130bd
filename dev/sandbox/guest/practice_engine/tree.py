"""A process and its children: born titled, watched, ended together."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress

from setproctitle import setproctitle  # type: ignore[import-not-found,unused-ignore]

WATCHED = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD}
PR_SET_PDEATHSIG = 1


class ChildDied(Exception):
    """A child ended though nobody told it to."""


class Tree:
    """The children of this process, and the news from all below it."""

    def __init__(self, orphans: bool, private: Sequence[socket.socket] = ()) -> None:
        self.orphans = orphans
        self._private = private  # what a child must not keep open
        self._owner = os.getpid()
        self.children: set[int] = set()
        self._news_out, self._news_in = os.pipe()
        os.set_blocking(self._news_out, False)
        self.born: set[int] = set()
        self.ready = 0

    def spawn(self, title: str, work: Callable[[], int]) -> None:
        """Fork a child that does `work` and exits with what it returns."""
        parent = os.getpid()
        pid = os.fork()
        if pid:
            self.children.add(pid)
            return
        status = 1
        try:
            self.children = set()
            for one in self._private:
                one.close()
            signal.pthread_sigmask(signal.SIG_SETMASK, set())
            if not self.orphans:
                ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
                if os.getppid() != parent:
                    os._exit(1)
            setproctitle(title)
            self._tell(f"born {os.getpid()}")
            status = work()
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
        finally:
            os._exit(status)

    def tell_ready(self) -> None:
        """A worker says that it serves."""
        self._tell("ready 1")

    def wait(self, seconds: float | None = None) -> int | None:
        """The signal that says stop, or None after `seconds`; raises when a child dies."""
        if seconds is None:
            number = signal.sigwait(WATCHED)
        else:
            info = signal.sigtimedwait(WATCHED, seconds)
            number = info.si_signo if info else 0
        self._read_news()
        if number == signal.SIGCHLD:
            self._reap()
            return None
        return number or None

    def end(self) -> None:
        """SIGTERM to the children, and wait for them."""
        for pid in self.children:
            os.kill(pid, signal.SIGTERM)
        for pid in self.children:
            os.waitpid(pid, 0)
        self.children.clear()

    def kill(self) -> None:
        """SIGKILL to everything below, as engines do when a part of them has died."""
        self._read_news()
        for pid in self.born:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _reap(self) -> None:
        while self.children:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            self.children.discard(pid)
            self.born.discard(pid)
            raise ChildDied(f"pid {pid} ended with status {os.waitstatus_to_exitcode(status)}")

    def _tell(self, text: str) -> None:
        os.write(self._news_in, f"{text}\n".encode())

    def _read_news(self) -> None:
        if os.getpid() != self._owner:
            return
        try:
            news = os.read(self._news_out, 65536).decode()
        except BlockingIOError:
            return
        for what, number in (line.split() for line in news.splitlines()):
            if what == "born":
                self.born.add(int(number))
            else:
                self.ready += 1
