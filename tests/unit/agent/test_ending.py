"""Ends real processes: whole trees, stubborn ones, detached ones, and never a stranger."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from cutover_agent.clock import Deadline
from cutover_agent.ending import await_death, end_trees, why_alive
from cutover_agent.processes import Process, descendants, read_process, read_processes
from cutover_agent.release_plan import Tree
from tests.unit.agent.samples import process

TREE = r"""
import os, signal, sys, time
stubborn, detach = sys.argv[1] == "stubborn", sys.argv[2] == "detach"
def child():
    if stubborn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.write(1, b"%d\n" % os.getpid())
    time.sleep(60)
def spawn():
    if os.fork() == 0:
        if detach:
            os.setsid()
            if os.fork():
                os._exit(0)
        child()
        os._exit(0)
spawn()
spawn()
os.write(1, b"%d\n" % os.getpid())
time.sleep(60)
"""
SLEEPER = r'import os, time; os.write(1, b"%d\n" % os.getpid()); time.sleep(60)'


class Zoo:
    """Processes of one test."""

    def __init__(self) -> None:
        self.children: list[subprocess.Popen[bytes]] = []
        self.pids: list[int] = []

    def tree(self, stubborn: str = "", detach: str = "") -> list[Process]:
        """A root with two children; the root comes first."""
        command = [sys.executable, "-c", TREE, stubborn, detach]
        return self._start(command, 3)

    def single(self, code: str) -> Process:
        return self._start([sys.executable, "-c", code], 1)[0]

    def _start(self, command: list[str], lines: int) -> list[Process]:
        child = subprocess.Popen(command, stdout=subprocess.PIPE)
        self.children.append(child)
        assert child.stdout
        pids = [int(child.stdout.readline()) for _ in range(lines)]
        self.pids += pids
        found = [read_process(pid) for pid in sorted(pids, key=lambda pid: pid != child.pid)]
        return [process for process in found if process]

    def close(self) -> None:
        for pid in self.pids:
            if running(pid):
                os.kill(pid, signal.SIGKILL)
        for child in self.children:
            child.kill()
            child.communicate()


@pytest.fixture
def zoo() -> Iterator[Zoo]:
    animals = Zoo()
    yield animals
    animals.close()


def running(pid: int) -> bool:
    found = read_process(pid)
    return found is not None and found.state != "Z"


def as_tree(*members: Process) -> Tree:
    return Tree(members[0], members)


def test_a_tree_that_stops_when_asked_is_not_killed(zoo: Zoo) -> None:
    root, *children = zoo.tree()
    assert {p.pid for p in descendants(root, read_processes())} == {p.pid for p in children}
    started = time.monotonic()
    got = end_trees([as_tree(root, *children)], 1)
    assert (got.killed, got.alive) == ((), ())
    assert not any(running(p.pid) for p in (root, *children))
    assert time.monotonic() - started < 3


def test_workers_that_outlive_their_root_are_not_waited_for_as_long_as_a_root(zoo: Zoo) -> None:
    root, *children = zoo.tree()
    started = time.monotonic()
    end_trees([as_tree(root, *children)], 4)
    assert not any(running(p.pid) for p in (root, *children))
    assert time.monotonic() - started < 3


def test_what_ignores_the_request_is_killed_and_named(zoo: Zoo) -> None:
    root, *children = zoo.tree(stubborn="stubborn")
    got = end_trees([as_tree(root, *children)], 0.2)
    assert {p.pid for p in got.killed} == {p.pid for p in children}
    assert got.alive == ()
    assert not any(running(p.pid) for p in (root, *children))


def test_a_double_forked_member_of_another_session_is_ended(zoo: Zoo) -> None:
    root, *children = zoo.tree(detach="detach")
    assert all(child.parent != root.pid for child in children)
    assert descendants(root, read_processes()) == [] or all(
        p.state == "Z" for p in descendants(root, read_processes())
    )
    end_trees([as_tree(child) for child in children], 5)
    assert not any(running(child.pid) for child in children)
    assert running(root.pid)


def test_a_process_that_got_the_number_of_another_is_never_hit(zoo: Zoo) -> None:
    stranger = zoo.single(SLEEPER)
    was = dataclasses.replace(stranger, start=stranger.start - 1)
    assert end_trees([as_tree(was)], 0.1).alive == ()
    assert running(stranger.pid)


def test_neighbours_outside_the_tree_stay(zoo: Zoo) -> None:
    root, *children = zoo.tree()
    other = zoo.single(SLEEPER)
    end_trees([as_tree(root, *children)], 0.2)
    assert running(other.pid)


def test_what_has_ended_already_takes_no_time(zoo: Zoo) -> None:
    gone = zoo.single(SLEEPER.replace("time.sleep(60)", ""))
    zoo.children[0].wait()
    started = time.monotonic()
    got = end_trees([as_tree(gone)], 30)
    assert (got.killed, got.alive) == ((), ())
    assert time.monotonic() - started < 1


def test_nothing_to_end_is_no_error() -> None:
    got = end_trees([], 30)
    assert (got.killed, got.alive) == ((), ())


def test_a_zombie_leader_whose_threads_live_is_ended_too(zoo: Zoo) -> None:
    """Its state says Z, but it still holds what it had open."""
    leader = zoo.single(
        "import ctypes, os, threading, time\n"
        "threading.Thread(target=time.sleep, args=(60,)).start()\n"
        r'os.write(1, b"%d\n" % os.getpid())'
        "\nctypes.CDLL(None).syscall(60, 0)  # exit of this thread only"
    )
    deadline = time.monotonic() + 5
    while running(leader.pid) and time.monotonic() < deadline:
        pass
    threads = os.listdir(f"/proc/{leader.pid}/task")
    assert len(threads) == 2
    end_trees([as_tree(leader)], 0.3)
    assert zoo.children[0].poll() is not None, "its threads run on"


@pytest.mark.parametrize(
    ("state", "elsewhere", "says"),
    [
        ("Z", False, "its parent, pid 40, has to reap it"),
        ("D", False, "it hangs in the kernel: reset the GPU (nvidia-smi --gpu-reset) or reboot"),
        ("R", False, "it hangs in the kernel"),
        ("S", True, "it lives in another pid namespace: end it there, or its container"),
    ],
)
def test_what_cannot_be_ended_is_told_with_what_to_do(
    state: str, elsewhere: bool, says: str
) -> None:
    stuck = process(50, "VLLM::Worker_TP0", parent=40, state=state, elsewhere=elsewhere)
    assert why_alive(stuck).startswith("pid 50 (VLLM::Worker_TP0), state")
    assert says in why_alive(stuck)


def test_a_death_is_seen_in_the_moment_it_happens_and_waited_for_no_longer_than_allowed(
    zoo: Zoo,
) -> None:
    one, other = zoo.single(SLEEPER), zoo.single(SLEEPER)
    spent = Deadline(60)
    assert not await_death([one], Deadline(0.1))
    assert spent.spent >= 0.1
    os.kill(one.pid, signal.SIGKILL)
    assert await_death([one], Deadline(60)) and spent.spent < 30
    assert not await_death([one, other], Deadline(0.1)), "one of them lives"
    gone = dataclasses.replace(one, start=one.start + 1)
    assert await_death([gone], Deadline(0)), "its number may have been given to another"
