"""Reading a checkpoint from disk, and from memory after it was read ahead."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from bench.comparison import OURS, Comparison, seconds
from bench.fleet import Fleet
from bench.options import Options
from sandbox.checkpoint import make_checkpoint

COLD = "cold"
GIB = 1 << 30
SHARDS = 16
CHUNK = 8 << 20


def compare(fleet: Fleet, options: Options) -> Iterator[Comparison]:
    """4 GiB, read as an engine's default loader does; before each run its pages are dropped."""
    size = (GIB >> 6 if options.quick else 4 * GIB) // SHARDS
    folder = fleet.folder / "weights"
    make_checkpoint(folder, shards=SHARDS, shard_bytes=size, config={"model_type": "llama"})
    shards = sorted(folder.glob("*.safetensors"))
    figures: dict[str, list[float]] = {OURS: [], COLD: []}
    for _ in range(options.runs):
        for way, prepare in {COLD: _nothing, OURS: warm}.items():
            for shard in shards:
                drop(shard)
            prepare(shards)
            figures[way].append(seconds(lambda: read(shards)))
    yield Comparison(
        f"reading {SHARDS * size / GIB:.3g} GiB of weights",
        "s",
        figures,
        note="ours: read ahead while the old model serves",
    )


def warm(shards: list[Path]) -> None:
    """Reads ahead, which nobody waits for."""
    read(shards)


def _nothing(shards: list[Path]) -> None:
    pass


def read(shards: list[Path]) -> None:
    """Reads every byte, shard after shard."""
    buffer = bytearray(CHUNK)
    for shard in shards:
        with shard.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass


def drop(path: Path) -> None:
    """Takes a file's pages out of memory, and those of no other."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)  # only clean pages can be dropped
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(handle)
