"""Files really come into memory, as fast as the disk allows and never faster than the host."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.growth import Growth
from cutover_agent import prefetch
from cutover_agent.clock import Deadline
from cutover_agent.prefetch import CHUNK, Pace, Prefetch
from cutover_agent.residency import resident

MIB = 1 << 20
FREE = 1 << 40


@pytest.fixture
def shards(tmp_path: Path) -> list[Path]:
    """24 MiB and some bytes on a disk, and nothing of it in memory."""
    paths = [tmp_path / f"model-{number}-of-3.safetensors" for number in (1, 2, 3)]
    for path in paths:
        with path.open("wb") as file:
            file.write(os.urandom(8 * MIB + 7))
            file.flush()
            os.fsync(file.fileno())
        forget(path)
    kind = subprocess.run(["stat", "-f", "-c", "%T", tmp_path], capture_output=True, text=True)
    if kind.stdout.strip() in ("tmpfs", "ramfs"):
        pytest.skip("this file system is memory itself")
    assert resident(paths) <= MIB, "the kernel has let go of it"
    return paths


def forget(path: Path) -> None:
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def test_afterwards_all_of_it_is_in_memory_and_a_second_time_reads_nothing(
    shards: list[Path],
) -> None:
    whole = sum(path.stat().st_size for path in shards)
    first, again = Prefetch(shards, FREE, Deadline(60)), Prefetch(shards, FREE, Deadline(60))
    first.run()
    assert resident(shards) == first.read_bytes == whole
    again.run()
    assert again.read_bytes == 0


def test_only_what_is_missing_is_read(shards: list[Path]) -> None:
    shards[1].read_bytes()
    reading = Prefetch(shards, FREE, Deadline(60))
    reading.run()
    assert reading.read_bytes == 2 * shards[0].stat().st_size
    assert resident(shards) == sum(path.stat().st_size for path in shards)


def test_at_no_moment_more_is_in_memory_than_the_cap_allows(shards: list[Path]) -> None:
    cap = 20 * MIB
    with Growth(shards) as growth:
        reading = Prefetch(shards, cap, Deadline(60))
        reading.run()
    whole, (_, before, started) = sum(path.stat().st_size for path in shards), growth.looks[0]
    assert growth.whole == whole - before
    assert all(there - before <= cap * (ended - started) for _, there, ended in growth.looks)


@dataclass
class Clock:
    """Time that passes only in a sleep, which takes longer than was wished."""

    late: Iterator[float]
    now: float = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds + next(self.late)


@settings(deadline=None)
@given(
    sizes=st.lists(st.integers(1, CHUNK), min_size=1, max_size=30),
    pauses=st.lists(st.floats(0, 3), min_size=30, max_size=30),
    late=st.lists(st.floats(0, 0.5), min_size=30, max_size=30),
)
def test_in_no_stretch_of_time_more_passes_than_the_cap_allows_and_a_block(
    sizes: list[int], pauses: list[float], late: list[float]
) -> None:
    clock, cap = Clock(iter(late)), 3.0 * CHUNK
    pace, passed = Pace(cap, clock, clock.sleep), list[tuple[float, int]]()
    for size, pause in zip(sizes, pauses, strict=False):
        clock.now += pause
        assert pace.wait(size, Deadline(60))
        passed.append((clock.now, size))
    for first, (start, _) in enumerate(passed):
        later = 0
        for moment, size in passed[first + 1 :]:
            later += size
            assert later <= cap * (moment - start) + 1e-3, "the first block is the one more"
    assert sum(sizes) <= cap * clock.now + 1e-3


def test_it_ends_in_time(shards: list[Path]) -> None:
    spent = Deadline(60)
    reading = Prefetch(shards, 1 * MIB, Deadline(0.2))
    reading.run()
    assert reading.read_bytes < sum(path.stat().st_size for path in shards)
    assert spent.spent < 10, "and does not wait for a turn that comes too late"


def test_readers_take_the_parts_in_the_order_of_the_files(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a", "b", "empty")]
    for path, size in zip(paths, (CHUNK + 1, 5, 0), strict=True):
        path.write_bytes(bytes(size))
    parts = [(path.name, start, size) for path, start, size in prefetch._parts(paths)]
    assert parts == [("a", 0, CHUNK), ("a", CHUNK, 1), ("b", 0, 5)]
