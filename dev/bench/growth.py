"""Watches files come into memory, as the kernel tells it, and takes no reader's word for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from cutover_agent.residency import resident

LOOK_SECONDS = 0.02


@dataclass
class Growth:
    """Looks again and again, for the time of a block."""

    paths: Sequence[Path]
    looks: list[tuple[float, int, float]] = field(default_factory=list)
    """When a look began, the bytes in memory, when it ended."""
    _over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Growth:
        self._look()
        self._thread = threading.Thread(target=self._follow)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()
        self._look()

    def _follow(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            self._look()

    def _look(self) -> None:
        began = time.monotonic()
        self.looks.append((began, resident(self.paths), time.monotonic()))

    @property
    def whole(self) -> int:
        """Bytes that came in all."""
        return self.looks[-1][1] - self.looks[0][1]

    def most(self, seconds: float) -> int:
        """Most bytes that came within any stretch of so long."""
        found = first = 0
        for number, (_, there, ended) in enumerate(self.looks):
            while first < number and ended - self.looks[first][0] > seconds:
                first += 1
            found = max(found, there - self.looks[first][1])
        return found
