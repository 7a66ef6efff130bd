"""Memory on a simulated GPU: what processes hold open is what is in use."""

from __future__ import annotations

import os

MIB = 1024 * 1024
TOTAL_MIB = 97887
MEMORY = "/memfd:nvidia"


class Allocation:
    """Holds the device nodes, and a sparse memfd whose size is the memory in use on the GPU."""

    def __init__(self, gpu: int) -> None:
        nodes = (f"/dev/nvidia{gpu}", "/dev/nvidiactl", "/dev/nvidia-uvm")
        self._nodes = [os.open(node, os.O_RDWR) for node in nodes]
        self._memory: int | None = None
        self._gpu = gpu

    def resize(self, mib: int) -> None:
        """Use so many MiB from now on."""
        if self._memory is None and mib:
            self._memory = os.memfd_create(f"nvidia{self._gpu}")
        if self._memory is not None:
            os.ftruncate(self._memory, mib * MIB)


def holders() -> dict[tuple[int, int], int]:
    """{(gpu, pid): bytes}; memory that several processes share counts for the first of them."""
    found: dict[tuple[int, int], int] = {}
    counted: set[int] = set()
    for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
        for link, target in _descriptors(pid):
            if target.startswith(MEMORY):
                try:
                    status = os.stat(link)
                except OSError:
                    continue
                if status.st_ino not in counted:
                    counted.add(status.st_ino)
                    key = int(target[len(MEMORY) :].split()[0]), pid
                    found[key] = found.get(key, 0) + status.st_size
    return found


def used_mib(gpu: int) -> int:
    """What all live processes together use of a GPU."""
    return sum(size for (index, _), size in holders().items() if index == gpu) // MIB


def _descriptors(pid: int) -> list[tuple[str, str]]:
    """Every thread's: where the first thread has ended, only the others show descriptors."""
    found = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            folder = f"/proc/{pid}/task/{thread}/fd"
            for number in os.listdir(folder):
                found.append((f"{folder}/{number}", os.readlink(f"{folder}/{number}")))
    except OSError:
        pass  # it ended, or it belongs to somebody else
    return found
