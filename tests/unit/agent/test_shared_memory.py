"""Which segments are stale, and that nothing in use is ever removed."""

from __future__ import annotations

import mmap
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from cutover_agent import sweep as sweeping
from cutover_agent.shared_memory import InUse, Segment, in_use, read_segments, stale
from cutover_agent.sweep import Sweep, Swept

NOW = 1000.0


@pytest.fixture(autouse=True)
def only_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other processes of the machine may not let themselves be looked into."""
    monkeypatch.setattr(sweeping, "all_pids", lambda: iter([os.getpid()]))


NOBODY = InUse(frozenset())
MINE = {os.getuid()}


def segments_in_use() -> InUse:
    return in_use([os.getpid()])


def sweep(folder: Path, stopped_at: float) -> Swept:
    return Sweep(MINE, stopped_at, shm=folder, tmp=folder).finish()


def segment(name: str, inode: int = 7, changed: float = NOW) -> Segment:
    return Segment(name, 1, inode, 4096, changed)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("psm_1a2b3c", True),
        ("sem.mp-abc123", True),
        ("sem.loky-1-xyz", True),
        ("nccl-AbCdEf", True),
        ("vllm_offload_1.mmap", True),
        ("VLLM_OBJECT_STORAGE_SHM_BUFFER", True),
        ("sgl_shm_mm_1234_ab12", True),
        ("sglang_x", True),
        ("PostgreSQL.1234", False),
        ("sem.other", False),
        ("my_psm_x", False),
        ("mynccl-x", False),
        ("pulse-shm-1", False),
    ],
)
def test_only_kinds_that_engines_leave_behind_are_stale(name: str, known: bool) -> None:
    assert bool(stale([segment(name)], NOBODY, NOW, MINE)) is known


def test_what_somebody_uses_stays_whatever_its_name_and_age() -> None:
    old = segment("psm_x", inode=7, changed=0)
    assert stale([old], InUse(frozenset({(1, 7)})), NOW, MINE) == []
    assert stale([old], InUse(frozenset({(2, 7), (1, 8)})), NOW, MINE) == [old]


def test_what_was_made_after_the_stop_stays() -> None:
    assert stale([segment("psm_x", changed=NOW + 0.001)], NOBODY, NOW, MINE) == []


@pytest.fixture
def prefix() -> Iterator[str]:
    name = f"psm_test{uuid.uuid4().hex}"
    yield name
    for path in Path("/dev/shm").glob(f"{name}*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def used(name: str) -> bool:
    status = os.stat(f"/dev/shm/{name}")
    return (status.st_dev, status.st_ino) in segments_in_use().files


def test_open_and_mapped_segments_are_in_use_and_others_are_not(prefix: str) -> None:
    paths = {kind: f"/dev/shm/{prefix}{kind}" for kind in ("open", "mapped", "left")}
    for path in paths.values():
        Path(path).write_bytes(b"\0" * 4096)
    with open(paths["open"], "rb"):
        with open(paths["mapped"], "r+b") as file:
            mapped = mmap.mmap(file.fileno(), 4096)
        assert used(f"{prefix}open")
        assert used(f"{prefix}mapped")
        assert not used(f"{prefix}left")
        mapped.close()
    assert not used(f"{prefix}mapped")
    mine = [s for s in read_segments() if s.name.startswith(prefix)]
    assert {s.name for s in stale(mine, segments_in_use(), time.time(), MINE)} == {
        f"{prefix}{kind}" for kind in paths
    }


def test_a_segment_that_was_renamed_while_mapped_is_in_use(prefix: str) -> None:
    """As semaphores are: mapped under a temporary name first."""
    path = Path(f"/dev/shm/{prefix}.tmp")
    path.write_bytes(b"\0" * 32)
    with open(path, "r+b") as file:
        mapped = mmap.mmap(file.fileno(), 32)
    os.link(path, f"/dev/shm/{prefix}")
    path.unlink()
    assert used(prefix)
    mapped.close()


def test_a_sweep_removes_the_stale_files_and_only_files(
    tmp_path: Path,
) -> None:
    for name in ("psm_a", "sem.mp-b", "other"):
        (tmp_path / name).write_bytes(b"x" * 8192)
    (tmp_path / "psm_folder").mkdir()
    (tmp_path / "psm_link").symlink_to(tmp_path / "other")
    got = sweep(tmp_path, time.time() + 1)
    assert (got.segments, got.size) == (2, sum([8192, 8192]))
    assert sorted(os.listdir(tmp_path)) == ["other", "psm_folder", "psm_link"]


def test_many_small_semaphores_take_no_time(prefix: str) -> None:
    folder = Path("/dev/shm") / prefix
    folder.mkdir()
    for number in range(3000):
        os.close(os.open(folder / f"sem.mp-{number}", os.O_CREAT, 0o600))
    started = time.monotonic()
    assert sweep(folder, time.time() + 1).segments == 3000
    assert time.monotonic() - started < 2


def test_what_may_not_be_looked_into_stops_no_release_and_removes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root in a container may not read everybody's descriptors: then nobody knows."""

    def refuse(*_: object) -> str:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "psm_a").touch()
    monkeypatch.setattr(os, "readlink", refuse)
    assert sweep(tmp_path, time.time() + 1).segments == 0
    assert (tmp_path / "psm_a").exists()
