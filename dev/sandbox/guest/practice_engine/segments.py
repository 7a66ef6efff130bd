"""Shared memory and sockets as engines and NCCL make them; a killed engine leaves them behind."""

from __future__ import annotations

import mmap
import os
import socket
import uuid
from pathlib import Path

SHM = Path("/dev/shm")
BYTES = 4 * 1024 * 1024


class Segments:
    """What one process has made; mapped, not open, as the real ones are."""

    def __init__(self) -> None:
        self._paths: list[Path] = []
        self._held: list[object] = []

    def add(self, name: str) -> None:
        """Make and map a sparse segment in /dev/shm, named `name` and something random."""
        path = SHM / f"{name}{uuid.uuid4().hex[:8]}"
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.ftruncate(fd, BYTES)
        self._held.append(mmap.mmap(fd, BYTES))
        os.close(fd)
        self._paths.append(path)

    def add_socket(self) -> None:
        """Listen on an IPC socket under /tmp, named as ZeroMQ's are."""
        path = Path("/tmp") / str(uuid.uuid4())
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(path))
        listening.listen()
        self._held.append(listening)
        self._paths.append(path)

    def remove(self) -> None:
        """An orderly end."""
        for path in self._paths:
            path.unlink(missing_ok=True)
