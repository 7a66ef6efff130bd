"""Reads files into the page cache: side by side, in their order, and never faster than allowed."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Callable

from .clock import Deadline
from .residency import resident_part

CHUNK = 4 << 20
READERS = 8
"""A disk answers many requests at once faster than one after the other."""


class Pace:
    """Lets blocks pass one by one, so far apart that they never exceed a rate.

    In no stretch of time do more bytes pass than the rate allows for it, plus one block.
    """

    def __init__(
        self,
        per_second: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._per_second, self._clock, self._sleep = per_second, clock, sleep
        self._lock = threading.Lock()
        self._last = clock()

    def wait(self, size: int, deadline: Deadline) -> bool:
        """Comes back when so many bytes may be read; False where time is up before that."""
        # Held while it sleeps: readers whose turns were given out ahead could wake up at once.
        with self._lock:
            moment = self._last + size / self._per_second
            self._sleep(min(max(0.0, moment - self._clock()), deadline.left))
            self._last = max(moment, self._clock())
            return not deadline.passed


class Prefetch:
    """One run over some files; `read_bytes` is how much was not in memory and was read."""

    def __init__(self, paths: Sequence[Path], per_second: float, deadline: Deadline) -> None:
        self._pace, self._deadline = Pace(per_second), deadline
        self._parts, self._lock = _parts(paths), threading.Lock()
        self.read_bytes = 0

    def run(self, tell: Callable[[int], None] = lambda _: None) -> None:
        """Reads until everything was read or time is up; `tell` gets the bytes so far now and then.

        Raises OSError where a file cannot be read.
        """
        with ThreadPoolExecutor(READERS) as pool:
            for done in [pool.submit(self._read, tell) for _ in range(READERS)]:
                done.result()

    def _read(self, tell: Callable[[int], None]) -> None:
        buffer = bytearray(CHUNK)
        while True:
            with self._lock:
                part = next(self._parts, None)
            if part is None:
                return
            path, start, size = part
            descriptor = os.open(path, os.O_RDONLY)
            try:
                if resident_part(descriptor, start, size) == size:
                    continue
                if not self._pace.wait(size, self._deadline):
                    return
                # Asked for as a whole first: else the kernel reads ahead in small steps.
                os.posix_fadvise(descriptor, start, size, os.POSIX_FADV_WILLNEED)
                os.preadv(descriptor, [buffer], start)
            finally:
                os.close(descriptor)
            with self._lock:
                self.read_bytes += size
            tell(self.read_bytes)


def _parts(paths: Sequence[Path]) -> Iterator[tuple[Path, int, int]]:
    for path in paths:
        whole = path.stat().st_size
        for start in range(0, whole, CHUNK):
            yield path, start, min(CHUNK, whole - start)
