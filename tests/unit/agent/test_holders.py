"""Who holds a GPU: device memory from a list that may leave somebody out, and open devices."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cutover_agent import devices as device_files
from cutover_agent.cgroup import container_of
from cutover_agent.clock import Deadline, wait_for
from cutover_agent.devices import Devices, devices_of
from cutover_agent.gpus import Reading, Row
from cutover_agent.holders import find_holders
from cutover_agent.processes import read_process
from tests.unit.agent.samples import process, reading


@pytest.mark.parametrize(
    ("rows", "seen", "expected"),
    [
        pytest.param(None, reading(5000), None, id="no list"),
        pytest.param(None, reading(0), 0, id="no list, but a card that reports nothing"),
        pytest.param([Row(7, "GPU-0", 100)], reading(100), 100, id="listed"),
        pytest.param([Row(7, "GPU-0", 1), Row(7, "GPU-1", 2)], reading(1, 2), 3, id="two cards"),
        pytest.param(
            [Row(7, "GPU-0", 1), Row(7, "GPU-1", None)], reading(1, 2), None, id="one not told"
        ),
        pytest.param(
            [Row(8, "GPU-0", 100)], reading(100), 0, id="not listed, and the list adds up"
        ),
        pytest.param([Row(8, "GPU-0", 100)], reading(5000), None, id="the list leaves memory out"),
        pytest.param([Row(8, "GPU-0", None)], reading(100), None, id="another is not told"),
        pytest.param([], reading(5000), None, id="an empty list on a full box"),
        pytest.param([], reading(0), 0, id="an empty list on a free box"),
        pytest.param([], reading(0, problem="broken"), None, id="no reading"),
        # Seen on an H200: a process of 20998 MiB, a card of 21007 MiB.
        pytest.param([Row(8, "GPU-0", 20998)], reading(21007), 0, id="the driver's own share"),
        pytest.param(
            [Row(8, f"GPU-{i}", 70000) for i in range(8)], reading(*[70012] * 8), 0, id="8 cards"
        ),
    ],
)
def test_memory_that_nobody_accounts_for_is_not_taken_for_zero(
    rows: list[Row] | None, seen: Reading, expected: int | None
) -> None:
    """Of a process that could compute on every GPU; the others of the list are visible too."""
    pids = {7, *(row.pid for row in rows or [])}
    known = {pid: process(pid, "x") for pid in pids}
    opened = dict.fromkeys(pids, Devices(frozenset(seen.used)))
    listed = None if rows is None else tuple(rows)
    found = {h.process.pid: h.mib for h in find_holders(known, opened, listed, seen)}
    assert found[7] == expected


@pytest.mark.parametrize(
    ("cgroup", "expected"),
    [
        ("/system.slice/docker-0123.scope", True),
        ("/docker/0123", True),
        ("/kubepods.slice/kubepods-pod1.slice/cri-containerd-1.scope", True),
        ("/user.slice/user-0.slice/user@0.service/user.slice/libpod-1.scope", True),
        ("/machine.slice/libpod-1.scope", True),
        ("/lxc/box/system.slice/a.service", True),
        ("/system.slice/vllm-small.service", False),
        ("/user.slice/user-0.slice/session-1.scope", False),
        ("/", False),
        ("", False),
    ],
)
def test_a_container_is_known_by_its_control_group(cgroup: str, expected: bool) -> None:
    assert bool(container_of(cgroup)) is expected


@pytest.fixture
def devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of files that stand for the GPUs' devices."""
    folder = tmp_path / "dev"
    folder.mkdir()
    for index in (0, 7, 12):
        (folder / f"nvidia{index}").write_bytes(b"\0" * 4096)
    (folder / "nvidiactl").touch()
    (folder / "nvidia-uvm").touch()
    monkeypatch.setattr(device_files, "FOLDER", str(folder))
    return folder


Run = Callable[[str], int]


@pytest.fixture
def run() -> Iterator[Run]:
    """Runs python code until the test is over; returns when the code has printed a line."""
    started = []

    def start(code: str) -> int:
        child = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": ""},
        )
        started.append(child)
        assert child.stdout
        assert child.stdout.readline() == b"ready\n"
        return child.pid

    yield start
    for child in started:
        child.kill()
        child.communicate()


def test_open_devices_are_found_and_control_devices_are_not(devices: Path, run: Run) -> None:
    code = f"a = [open('{devices}/nvidia' + n) for n in ('0', '7', '7', 'ctl', '-uvm')]"
    pid = run(f"{code}; print('ready', flush=True); input()")
    assert devices_of(pid).gpus == {0, 7}


def test_a_mapped_device_is_found_though_its_descriptor_is_closed(devices: Path, run: Run) -> None:
    code = f"import mmap; f = open('{devices}/nvidia12', 'r+b'); m = mmap.mmap(f.fileno(), 4096)"
    pid = run(f"{code}; f.close(); print('ready', flush=True); input()")
    assert devices_of(pid).gpus == {12}


ZOMBIE_LEADER = """
import ctypes, sys, threading
files = [open(path) for path in sys.argv[1:]]
def live():
    print("ready", flush=True)
    sys.stdin.read()
threading.Thread(target=live).start()
ctypes.CDLL(None).syscall(60, 0)  # exit of this thread only
"""


def test_a_zombie_leader_whose_threads_live_is_looked_into(devices: Path, run: Run) -> None:
    code = ZOMBIE_LEADER.replace("sys.argv[1:]", repr([f"{devices}/nvidia7"]))
    pid = run(code)
    found = wait_for(lambda: zombie(pid), Deadline(5))
    assert found
    assert devices_of(pid).gpus == {7}


def zombie(pid: int) -> bool:
    found = read_process(pid)
    return found is not None and found.state == "Z"


def test_a_process_that_is_gone_holds_nothing() -> None:
    ended = subprocess.Popen(["/bin/true"])
    ended.wait()
    assert devices_of(ended.pid).gpus == frozenset()


def test_a_holder_carries_memory_and_place(devices: Path, run: Run) -> None:
    pid = run(f"f = open('{devices}/nvidia0'); print('ready', flush=True); input()")
    found = read_process(pid)
    assert found is not None
    idle = process(os.getpid(), "/sbin/init")
    opened = device_files.scan({pid: found, idle.pid: idle})
    (got,) = find_holders({pid: found, idle.pid: idle}, opened, (Row(pid, "GPU-0", 5),), reading(5))
    assert (got.process.pid, got.gpus, got.mib) == (pid, frozenset({0}), 5)
    assert got.process.container == ""


def test_a_zombie_that_the_list_shows_is_a_holder_though_it_has_nothing_open() -> None:
    seen = process(4711, name="VLLM::Worker_TP", state="Z")
    got = find_holders({4711: seen}, {}, (Row(4711, "GPU-0", 22000),), reading(22000))
    assert [(h.process.pid, h.gpus, h.mib) for h in got] == [(4711, frozenset({0}), 22000)]


def test_a_list_of_another_pid_namespace_is_unknown_and_names_nobody() -> None:
    """Its number 4711 is an innocent process here; 7 has the GPU open."""
    known = {7: process(7, "VLLM::Worker_TP0"), 4711: process(4711, "cron")}
    rows = (Row(4711, "GPU-0", 22000), Row(999_999, "GPU-0", 5))
    got = find_holders(known, {7: Devices(frozenset({0}))}, rows, reading(22000))
    assert [(h.process.pid, h.mib) for h in got] == [(7, None)]


@pytest.mark.parametrize("denied", ["readlink", "listdir"])
def test_a_process_that_may_not_be_looked_into_does_not_end_the_survey(
    denied: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root in a container may not read everybody's descriptors."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, denied, refuse)
    assert devices_of(os.getpid()).gpus == frozenset()
