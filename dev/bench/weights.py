"""Weights: reading a checkpoint from disk and after the host read it ahead, and how that keeps."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.comparison import OURS, Comparison, seconds
from bench.fleet import Fleet
from bench.growth import Growth
from bench.options import Options
from cutover_agent.clock import Deadline
from cutover_agent.prefetch import CHUNK as BLOCK
from cutover_agent.prefetch import Prefetch
from cutover_agent.residency import resident
from sandbox.checkpoint import make_checkpoint

COLD = "cold"
GIB = 1 << 30
SHARDS = 16
CHUNK = 8 << 20
NO_CAP = 1 << 50
CAP = 512 << 20
"""Bytes a second."""
MOST_MISSING_PERCENT = 5.0
LIMIT_SECONDS = 900


def compare(fleet: Fleet, options: Options) -> Iterator[Comparison]:
    """4 GiB, read as an engine's default loader does; before each run its pages are dropped."""
    size = (GIB >> 6 if options.quick else 4 * GIB) // SHARDS
    folder = fleet.folder / "weights"
    make_checkpoint(folder, shards=SHARDS, shard_bytes=size, config={"model_type": "llama"})
    shards = sorted(folder.glob("*.safetensors"))
    whole = sum(shard.stat().st_size for shard in shards)
    figures: dict[str, list[float]] = {OURS: [], COLD: []}
    missing, most = [], []
    for _ in range(options.runs):
        drop(shards)
        figures[COLD].append(seconds(lambda: read(shards)))
        drop(shards)
        Prefetch(shards, NO_CAP, Deadline(LIMIT_SECONDS)).run()
        missing.append(100 * (1 - resident(shards) / whole))
        figures[OURS].append(seconds(lambda: read(shards)))
        drop(shards)
        most.append(most_in_a_second(shards) / CAP)
    yield Comparison(f"reading {whole / GIB:.3g} GiB, read ahead or not", "s", figures)
    name = "what of it is not in memory after that"
    yield Comparison(name, "%", {OURS: missing}, limit=MOST_MISSING_PERCENT)
    name = f"most read ahead in any second, of {CAP >> 20} MiB allowed"
    yield Comparison(name, "of it", {OURS: most}, limit=1.0 + BLOCK / CAP)


def most_in_a_second(shards: Sequence[Path]) -> int:
    """Most bytes that came into memory within any second of reading ahead at CAP."""
    with Growth(shards) as growth:
        Prefetch(shards, CAP, Deadline(LIMIT_SECONDS)).run()
    return growth.most(1.0)


def read(shards: Sequence[Path]) -> None:
    """Reads every byte, shard after shard."""
    buffer = bytearray(CHUNK)
    for shard in shards:
        with shard.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass


def drop(shards: Sequence[Path]) -> None:
    """Takes the files' pages out of memory, and those of no other."""
    for shard in shards:
        handle = os.open(shard, os.O_RDONLY)
        try:
            os.fsync(handle)  # only clean pages can be dropped
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(handle)
