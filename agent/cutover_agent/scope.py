"""Which GPUs a cutover is about: those of the deployment, by UUID, on a host of so many."""

from __future__ import annotations

from dataclasses import dataclass

from .gpus import FULL_UUID, Gpu, Reading
from .order import Order


class ScopeError(RuntimeError):
    """The order names GPUs that this host does not have; the text says which there are."""


@dataclass(frozen=True)
class Scope:
    """What a release, a gate and a sweep may look at."""

    host: str
    """Name of the host in the stack's config."""
    host_gpus: int
    gpus: tuple[Gpu, ...]
    """The deployment's, as they read when the scope was made."""
    idle_mib: int = 0
    """MiB that a GPU of this host may show with nothing on it."""

    @property
    def uuids(self) -> frozenset[str]:
        """UUIDs of the deployment's GPUs."""
        return frozenset(gpu.uuid for gpu in self.gpus)

    @property
    def indices(self) -> frozenset[int]:
        """Indices of the deployment's GPUs."""
        return frozenset(gpu.index for gpu in self.gpus)


def scope_of(order: Order, reading: Reading) -> Scope:
    """Finds the order's GPUs in a good reading; raises ScopeError where one is not there.

    A short UUID is legal for CUDA, but not for nvidia-smi: it is completed from what is there.
    """
    names = order.gpu_uuids or tuple(str(index) for index in order.gpus)
    chosen = [_find(name, reading) for name in names]
    if len({gpu.uuid for gpu in chosen}) != len(chosen):
        raise ScopeError(f"{order.deployment}: gpus names a GPU twice: {', '.join(names)}")
    return Scope(order.host, order.host_gpus, tuple(chosen), order.idle_mib)


def scope_at_hand(order: Order, reading: Reading) -> Scope:
    """As `scope_of`, but for a release that has to go on though the GPUs cannot be read.

    No gate ever opens for GPUs that were only assumed.
    """
    try:
        return assumed(order) if reading.problem else scope_of(order, reading)
    except ScopeError:
        return assumed(order)


def assumed(order: Order) -> Scope:
    """The order's GPUs by index alone."""
    gpus = tuple(Gpu(index, "", 0) for index in order.gpus)
    return Scope(order.host, order.host_gpus, gpus, order.idle_mib)


def _find(name: str, reading: Reading) -> Gpu:
    if name.isdigit():
        found = [gpu for gpu in reading.gpus if gpu.index == int(name)]
    else:
        found = [gpu for gpu in reading.gpus if gpu.uuid.lower().startswith(name.lower())]
    if len(found) == 1:
        return found[0]
    there = ", ".join(f"{gpu.index} {gpu.uuid}" for gpu in reading.gpus)
    how = "more than one GPU" if found else "no GPU"
    short = "" if name.isdigit() or FULL_UUID.fullmatch(name.lower()) else " (a short UUID)"
    raise ScopeError(f"gpus: {name}{short} is {how} of this host, which has: {there}")
