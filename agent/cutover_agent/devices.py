"""Which processes have a GPU's device open or mapped."""

from __future__ import annotations

import os
import re
from collections.abc import Container, Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from .processes import Process

FOLDER = "/dev"
_GPU = re.compile(r"nvidia(\d+)(?: \(deleted\))?")
_SLICE = re.compile(r"nvidia-caps/nvidia-cap(\d+)")
_UVM = "nvidia-uvm"
MONITOR_CAPABILITIES = (1, 2)
"""`nvidia-caps` of these numbers are for managing and watching MIG, not for using a slice."""


@dataclass(frozen=True)
class Devices:
    """What one process has of the driver's devices."""

    gpus: frozenset[int]
    """Indices of the GPUs, from the names of the nodes: a device number can be anything."""
    computes: bool = True
    """Whether it can hold device memory: CUDA needs `nvidia-uvm`, and drawing maps the GPU. Who
    only asks the driver, as monitors do, has neither."""
    mig: bool = False
    """Whether it uses a slice of a partitioned GPU."""


def scan(processes: Mapping[int, Process], suspects: Container[int] = ()) -> dict[int, Devices]:
    """Every process that has a GPU open, by pid.

    A mapping can outlive its descriptor. The table of mappings costs ten times what the rest of a
    process does, so only those who have a device open, and the `suspects`, are asked for it.
    """
    found = {}
    for pid, process in processes.items():
        devices = devices_of(pid, process.threads > 1, pid in suspects)
        if devices.gpus:
            found[pid] = devices
    return found


def devices_of(pid: int, threads: bool = True, mappings: bool = True) -> Devices:
    """What one process has open or mapped.

    Threads share one table of descriptors as a rule. A zombie leader whose threads live shows it
    only under task/, and a thread may have a table of its own.
    """
    paths = {_name(path) for path in _open_paths(pid, threads)} - {""}
    mapped = set(_mapped_paths(pid)) if mappings or paths else set()
    gpus = frozenset(int(m.group(1)) for m in map(_GPU.fullmatch, paths | mapped) if m)
    slices = {int(m.group(1)) for m in map(_SLICE.fullmatch, paths) if m}
    computes = _UVM in paths | mapped or any(map(_GPU.fullmatch, mapped))
    return Devices(gpus, computes, bool(slices - set(MONITOR_CAPABILITIES)))


def _open_paths(pid: int, threads: bool) -> Iterator[str]:
    """Targets of the descriptors; a table that threads share is read once."""
    base = f"/proc/{pid}"
    leader = yield from _targets(f"{base}/fd", [])
    for thread in _listing(f"{base}/task") if threads else []:
        yield from _targets(f"{base}/task/{thread}/fd", leader)


def _targets(folder: str, known: list[str]) -> Generator[str, None, list[str]]:
    """Targets of the descriptors in a folder, unless it holds what is known; returns its names."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        names = os.listdir(handle)
        for name in names if names != known else []:
            with suppress(OSError):
                # From the folder on: half the price of the whole path.
                yield os.readlink(name, dir_fd=handle)
    except OSError:
        return []
    finally:
        os.close(handle)
    return names


def _mapped_paths(pid: int) -> Iterator[str]:
    """Names of the devices that are mapped; where the leader has ended, a living thread tells."""
    base = f"/proc/{pid}"
    for place in (base, *(f"{base}/task/{thread}" for thread in _listing(f"{base}/task"))):
        try:
            with open(f"{place}/maps", "rb") as file:
                text = file.read()
        except OSError:
            continue
        if text:
            mark = f"{FOLDER}/nvidia".encode()
            for line in text.splitlines() if mark in text else []:
                if mark in line:
                    yield _name(line[line.find(mark) :].decode(errors="replace"))
            return


def _name(path: str) -> str:
    """A node of the driver by its name below /dev; empty for any other file."""
    name = path[len(FOLDER) + 1 :]
    return name if path.startswith(f"{FOLDER}/") and name.startswith("nvidia") else ""


def _listing(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
