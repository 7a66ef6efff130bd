"""The environment that arrives: what counts as right, unknown, excused and wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

import pytest

from cutover_agent import arrived
from cutover_agent.arrived import Arrived, compare, parse
from cutover_agent.processes import read_processes
from tests.unit.agent.samples import process

WANTED = {"NCCL_PROTO": "LL", "A": "b"}


def worker(pid: int, variables: Mapping[str, str] | None, spawned: bool = False) -> Arrived:
    return Arrived(process(pid, f"VLLM::Worker_TP{pid}"), variables, spawned)


def test_all_right_is_one_line_and_only_for_what_decides() -> None:
    seen = [worker(pid, {**WANTED, "X": "y"}) for pid in range(9)]
    found = compare(WANTED, seen, {})
    assert found.lines == ("NCCL_PROTO=LL in 9 of 9 processes",)
    assert found.faults == ()


def test_a_contrary_value_is_named_with_its_process() -> None:
    seen = [worker(1, WANTED), worker(2, {**WANTED, "A": "c"})]
    found = compare(WANTED, seen, {})
    assert found.faults == ("A is 'c', not 'b', in pid 2 (VLLM::Worker_TP2)",)
    assert "A=b in 1 of 2 processes" in found.lines


def test_absence_is_a_fault_where_it_can_be_read_and_unknown_where_not() -> None:
    seen = [worker(1, {"A": "b"}), worker(2, None)]
    found = compare(WANTED, seen, {})
    assert found.lines == ("NCCL_PROTO=LL in 0 of 2 processes, unknown in 1",)
    assert found.faults == ("NCCL_PROTO=LL is missing in pid 1 (VLLM::Worker_TP1)",)


def test_a_file_that_sets_it_excuses_absence_but_not_in_a_child_that_was_spawned() -> None:
    seen = [worker(1, {"A": "b"}), worker(2, {"A": "b"}, spawned=True)]
    found = compare(WANTED, seen, {"NCCL_PROTO": "sitecustomize.py"})
    assert found.lines == (
        "NCCL_PROTO=LL in 0 of 2 processes, set by sitecustomize.py in 1, hash ok",
    )
    assert found.faults == ("NCCL_PROTO=LL is missing in pid 2 (VLLM::Worker_TP2)",)


def test_a_file_that_sets_it_does_not_excuse_another_value() -> None:
    found = compare(WANTED, [worker(1, {**WANTED, "NCCL_PROTO": "Simple"})], {"NCCL_PROTO": "x"})
    assert found.faults == ("NCCL_PROTO is 'Simple', not 'LL', in pid 1 (VLLM::Worker_TP1)",)


@pytest.mark.parametrize(
    ("data", "variables"),
    [
        (b"A=b\0C=d=e\0E=\0", {"A": "b", "C": "d=e", "E": ""}),
        (b"", None),
        (b"\0\0\0\0", None),
        (b"VLLM::Worker_TP0\0\0\0\0\0LL\0B=c\0", None),
    ],
)
def test_an_environment_that_was_written_over_is_unknown(
    data: bytes, variables: dict[str, str] | None
) -> None:
    assert parse(data) == variables


CHILDREN = """
import os, subprocess, sys, time
if os.fork() == 0:
    time.sleep(60)
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], env={"A": "c"})
print("ready", flush=True)
time.sleep(60)
"""


def test_a_fork_is_told_from_a_program_of_its_own_in_real_processes() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", CHILDREN],
        stdout=subprocess.PIPE,
        env={"A": "b"},
        start_new_session=True,
    )
    try:
        assert parent.stdout
        parent.stdout.readline()
        mine = {
            pid: one
            for pid, one in read_processes().items()
            if pid == parent.pid or one.parent == parent.pid
        }
        found = {
            (arrived.environment_of(pid) or {}).get("A"): arrived._spawned(one, mine)
            for pid, one in mine.items()
            if pid != parent.pid
        }
        assert found == {"b": False, "c": True}
    finally:
        os.killpg(parent.pid, 9)
        parent.wait()
        assert parent.stdout
        parent.stdout.close()
