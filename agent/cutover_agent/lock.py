"""One transaction at a time: a lock that the kernel drops when its holder dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FOLDER = Path("/run/cutover")


@contextmanager
def held(name: str, wait: bool = True) -> Iterator[bool]:
    """Holds a named lock for the block; without `wait` gives False where another holds it."""
    FOLDER.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(FOLDER / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True
    finally:
        os.close(descriptor)


def is_held(name: str) -> bool:
    """Whether a live process holds the lock now."""
    with held(name, wait=False) as free:
        return not free
