"""Shared memory, sockets and ports that a dead server leaves. Ids are those of the field cases."""

from __future__ import annotations

import mmap
import os
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cutover_agent import sweep as sweeping
from cutover_agent.holders import Landscape
from cutover_agent.leftovers import leftovers
from cutover_agent.ports import Listener, in_the_way, parse_listeners, problems, read_listeners
from cutover_agent.processes import Process, read_process
from cutover_agent.release_plan import ReleasePlan, Tree
from cutover_agent.sweep import Sweep
from tests.unit.agent.samples import NOTEBOOK, VLLM, holder, landscape, process

ME = os.getuid()
SPAWNED = ("/opt/vllm/bin/python3", "-c", "from multiprocessing.spawn import spawn_main; ...")


@pytest.fixture(autouse=True)
def only_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other processes of the machine may not let themselves be looked into."""
    monkeypatch.setattr(sweeping, "all_pids", lambda: iter([os.getpid()]))


def sweep(folder: Path, uid: int = ME, before: float = 0.0) -> Sweep:
    return Sweep({uid}, time.time() + 1 - before, shm=folder, tmp=folder)


@pytest.mark.parametrize(
    ("case", "name"),
    [
        ("F33", "psm_1a2b3c"),
        ("F34", "vllm_offload_0f8b.mmap"),
        ("F35", "sgl_shm_mm_1234_ab12"),
        ("F37", "sem.loky-1-x"),
        ("F39", "VLLM_OBJECT_STORAGE_SHM_BUFFER"),
        ("NCCL", "nccl-AbCdEf"),
        ("PyTorch", "torch_1234_77_0"),
    ],
)
def test_what_nobody_maps_goes_and_what_somebody_maps_stays(
    case: str, name: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(b"\0" * 4096)
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 4096):
        assert sweep(tmp_path).finish().segments == 0, "its number may name anybody"
        assert path.exists()
    swept = sweep(tmp_path).finish()
    assert (swept.segments, swept.size) == (1, 4096), case
    assert swept.summary() == "removed 1 stale segments, 0 MiB"
    assert not path.exists()


def test_other_users_newer_files_and_other_names_stay(tmp_path: Path) -> None:
    for name in ("psm_a", "data.bin"):
        (tmp_path / name).write_bytes(b"x")
    assert sweep(tmp_path, uid=ME + 1).finish().segments == 0
    assert sweep(tmp_path, before=60).finish().segments == 0, "newer than the stop"
    assert sweep(tmp_path).finish().segments == 1
    assert os.listdir(tmp_path) == ["data.bin"]


def test_what_the_first_scan_did_not_see_is_not_removed(tmp_path: Path) -> None:
    one = sweep(tmp_path)
    (tmp_path / "psm_a").touch()
    one.first = one.scan()
    (tmp_path / "psm_b").touch()
    assert one.finish().segments == 1
    assert os.listdir(tmp_path) == ["psm_b"]


def test_what_the_gate_leaves_no_time_for_is_swept_afterwards(tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / f"sem.mp-{number}").touch()
    one = sweep(tmp_path)
    one.pause()
    one.remove()
    assert len(os.listdir(tmp_path)) == 50
    assert one.finish().segments == 50


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder whose path leaves room for the name of a socket."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


def test_only_real_sockets_without_a_listener_are_removed(short_path: Path) -> None:
    """F40."""
    tmp_path = short_path
    names = [f"0f8b1c2d-1111-2222-3333-44445555666{n}" for n in range(3)]
    stale, live = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    stale.bind(str(tmp_path / names[0]))
    stale.close()
    live.bind(str(tmp_path / names[1]))
    live.listen()
    (tmp_path / names[2]).write_text("a file")
    assert sweep(tmp_path, uid=ME + 1).finish().sockets == 0
    swept = sweep(tmp_path).finish()
    assert swept.summary() == "removed 1 stale sockets"
    assert sorted(os.listdir(tmp_path)) == names[1:]
    live.close()


def test_120_000_stale_semaphores_are_swept_within_seconds(tmp_path: Path) -> None:
    """F37. On a file system in memory, as /dev/shm is."""
    folder = Path("/dev/shm") / f"cutover-test-{os.getpid()}"
    folder.mkdir()
    try:
        for number in range(120_000):
            os.close(os.open(folder / f"sem.mp-{number}", os.O_CREAT, 0o600))
        started = time.process_time()
        swept = sweep(folder).finish()
        assert swept.segments == 120_000
        # Its own time: other tests share the processors.
        assert time.process_time() - started < 5
        assert len(swept.summary().splitlines()) == 1
    finally:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()


TCP = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when
   0: 00000000:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1
   1: 0100007F:1F41 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4712 1
   2: 0100007F:1F40 0100007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 4713 1
"""
TCP6 = """  sl  local_address rem_address st
   0: 00000000000000000000000001000000:1F40 00:0000 0A 0:0 00:0 0 0 0 8
"""


def test_listeners_are_read_from_the_kernels_tables() -> None:
    assert parse_listeners(TCP) == [
        Listener("0.0.0.0", 8000, 4711),
        Listener("127.0.0.1", 8001, 4712),
    ]
    assert parse_listeners(TCP6) == [Listener("::1", 8000, 8)]


@pytest.mark.parametrize(
    ("url", "address", "way"),
    [
        ("http://127.0.0.1:8000", "0.0.0.0", True),
        ("http://127.0.0.1:8000", "10.0.0.5", True),
        ("http://10.0.0.5:8000", "0.0.0.0", True),
        ("http://10.0.0.5:8000", "10.0.0.6", False),
        ("http://[::1]:8000", "::", True),
        ("http://127.0.0.1:8001", "0.0.0.0", False),
    ],
)
def test_a_listener_is_in_the_way_on_the_same_port_and_address(
    url: str, address: str, way: bool
) -> None:
    assert bool(in_the_way(url, [Listener(address, 8000, 1)])) is way


def test_only_a_listener_that_the_release_will_not_end_is_a_problem() -> None:
    """F42."""
    left = process(50, *SPAWNED, unit="session-3.scope")
    main = process(60, *VLLM, unit="vllm-small.service")
    hand = process(70, *VLLM)
    seen = {p.pid: p for p in (left, main, hand)}
    plan = ReleasePlan(stop=("vllm-small.service",), end=(Tree(hand, (hand,)),))
    found = [Listener("0.0.0.0", 8000, n, one) for n, one in enumerate(seen.values())]
    (said,) = problems(found, plan, seen)
    for part in ("port 8000 is taken by pid 50", "multiprocessing.spawn", "session-3.scope"):
        assert part in said
    assert "cannot be seen" in problems([Listener("::", 8000, 1)], plan, seen)[0]


def test_a_real_listener_is_found_with_its_process() -> None:
    mine = read_process(os.getpid())
    assert mine
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        assert [one.process for one in read_listeners(url, {mine.pid: mine})] == [mine]
        assert read_listeners(url, {})[0].process is None
    assert read_listeners(url, {mine.pid: mine}) == []


UNIT = "vllm-small.service"


@pytest.mark.parametrize(
    ("name", "process_", "others", "gpus", "ended"),
    [
        ("in its control group", process(50, *SPAWNED, unit=UNIT), (), (), True),
        ("an orphaned worker", process(50, "VLLM::Worker_TP0", unit="run-7.scope"), (), (), True),
        ("on other GPUs", process(50, "VLLM::Worker_TP0"), (), (4, 5), False),
        ("of another user", process(50, "VLLM::Worker_TP0", uid=1000), (), (), False),
        ("of another unit", process(50, "VLLM::Worker_TP0", unit="b.service"), (), (), False),
        ("in a container", process(50, "VLLM::Worker_TP0", unit="docker-1.scope"), (), (), False),
        ("of no engine", process(50, "python3", "train.py"), (), (), False),
        ("a worker of Ray", process(50, "ray::IDLE"), (), (), False),
        (
            "below a server that lives",
            process(50, "VLLM::Worker_TP0", parent=40),
            (process(40, *VLLM),),
            (),
            False,
        ),
        (
            "below a notebook",
            process(50, "VLLM::Worker_TP0", parent=40),
            (process(40, *NOTEBOOK),),
            (),
            False,
        ),
    ],
)
def test_a_unit_ends_its_own_leftovers_and_nobody_elses(
    name: str, process_: Process, others: tuple[Process, ...], gpus: tuple[int, ...], ended: bool
) -> None:
    seen: Landscape = landscape(holder(process_, None, 0, 1), others=others)
    found = leftovers(seen, UNIT, 0, frozenset(gpus), me=1)
    assert [one.pid for one in found] == [50] * ended, name
