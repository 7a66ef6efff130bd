"""Files really come into memory, as fast as the disk allows and never faster than the host."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from cutover_agent import prefetch
from cutover_agent.clock import Deadline, now
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


def test_at_no_moment_more_was_read_than_the_cap_allows(
    shards: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    cap, started, seen = 20 * MIB, now(), list[tuple[float, int]]()
    reading = Prefetch(shards, cap, Deadline(60))
    reading.run(lambda done: seen.append((now() - started, done)))
    assert seen and all(done <= cap * seconds for seconds, done in seen)
    assert sum(path.stat().st_size for path in shards) / cap <= now() - started


def test_what_a_pause_left_unused_is_not_made_up_for() -> None:
    pace = Pace(100 * CHUNK)
    wait_until(now() + 0.1)
    started = now()
    for _ in range(10):
        assert pace.wait(CHUNK, Deadline(60))
    assert now() - started >= 0.1


def wait_until(moment: float) -> None:
    while now() < moment:
        os.sched_yield()


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
