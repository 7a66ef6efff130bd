"""Removes what a dead server left behind, but only what was seen unused twice."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from .processes import all_pids
from .shared_memory import SHM, InUse, Segment, in_use, read_segments, stale
from .sockets import TMP, Socket, listened, nobody_answers, read_sockets, stale_sockets


@dataclass(frozen=True)
class Leftovers:
    """What one scan saw that nobody uses."""

    segments: tuple[Segment, ...] = ()
    sockets: tuple[Socket, ...] = ()


@dataclass
class Swept:
    """What was removed so far."""

    segments: int = 0
    size: int = 0
    """Bytes."""
    sockets: int = 0

    def summary(self) -> str:
        """One line for people; empty when there was nothing."""
        parts = []
        if self.segments:
            parts.append(f"{self.segments} stale segments, {self.size >> 20} MiB")
        if self.sockets:
            parts.append(f"{self.sockets} stale sockets")
        return f"removed {' and '.join(parts)}" if parts else ""


class Sweep:
    """Two scans, and what both saw unused is removed; in the background if wanted."""

    def __init__(
        self, uids: Collection[int], stopped_at: float, shm: Path = SHM, tmp: Path = TMP
    ) -> None:
        self.uids, self.stopped_at, self.shm, self.tmp = frozenset(uids), stopped_at, shm, tmp
        self.swept = Swept()
        self.first: Optional[Leftovers] = None
        self._enough = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def scan(self) -> Leftovers:
        """What nobody uses now."""
        segments = stale(read_segments(self.shm), InUse(frozenset()), self.stopped_at, self.uids)
        sockets = stale_sockets(read_sockets(self.tmp), (), self.stopped_at, self.uids)
        if segments:
            used = in_use(list(all_pids()), self.shm)
            segments = stale(segments, used, self.stopped_at, self.uids)
        if sockets:
            bound = listened()
            sockets = stale_sockets(sockets, bound, self.stopped_at, self.uids)
        return Leftovers(tuple(segments), tuple(sockets))

    def remove(self) -> Swept:
        """Scans twice, and removes what both scans saw; stops early when told so."""
        first = self.first = self.first or self.scan()
        if not (first.segments or first.sockets):
            return self.swept
        again = self.scan()
        before = {(s.name, s.inode, s.changed) for s in first.segments}
        for segment in again.segments:
            if self._enough.is_set():
                return self.swept
            if (segment.name, segment.inode, segment.changed) in before:
                with suppress(FileNotFoundError):
                    os.unlink(self.shm / segment.name)
                    self.swept.segments += 1
                    self.swept.size += segment.size
        for one in set(first.sockets) & set(again.sockets):
            if nobody_answers(one.path):
                with suppress(FileNotFoundError):
                    os.unlink(one.path)
                    self.swept.sockets += 1
        return self.swept

    def begin(self) -> None:
        """Removes in the background, while something else takes its time."""
        self._thread = threading.Thread(target=self._quietly, daemon=True)
        self._thread.start()

    def pause(self) -> None:
        """Stops removing: what is left waits for `finish`."""
        self._enough.set()

    def finish(self) -> Swept:
        """Removes what is left, by the same rules."""
        self.pause()
        if self._thread:
            self._thread.join()
        self._enough.clear()
        with suppress(OSError):
            self.remove()
        return self.swept

    def _quietly(self) -> None:
        # What cannot be swept is no reason against a model; `finish` tries once more.
        with suppress(OSError):
            self.remove()
