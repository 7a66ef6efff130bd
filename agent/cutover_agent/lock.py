"""One transaction at a time: a lock that the kernel drops when its holder dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FOLDER = Path("/run/cutover")


@contextmanager
def held(name: str) -> Iterator[None]:
    """Waits for a named lock, and holds it for the block."""
    FOLDER.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(FOLDER / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def is_held(name: str) -> bool:
    """Whether a live process holds the lock now."""
    FOLDER.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(FOLDER / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        # Shared, so that two who ask do not see each other.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
