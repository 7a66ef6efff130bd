"""Processes as /proc shows them, on every kind of control group tree."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from cutover_agent.cgroup import cgroup_of, unit_of
from cutover_agent.processes import (
    ancestors,
    descendants,
    parse_stat,
    read_process,
    read_processes,
)
from tests.unit.agent.samples import process

PURE = "0::/system.slice/vllm-small.service\n"
HYBRID = (
    "12:devices:/system.slice/vllm-small.service\n"
    "1:name=systemd:/system.slice/vllm-small.service\n0::/system.slice/vllm-small.service\n"
)
BARE_HYBRID = "4:memory:/other\n1:name=systemd:/system.slice/vllm-small.service\n0::/\n"
V1 = "9:cpu,cpuacct:/system.slice\n1:name=systemd:/system.slice/vllm-small.service\n"


@pytest.mark.parametrize("text", [PURE, HYBRID, BARE_HYBRID, V1])
def test_the_unit_is_found_on_every_kind_of_tree(text: str) -> None:
    assert unit_of(cgroup_of(text)) == "vllm-small.service"


@pytest.mark.parametrize(
    ("cgroup", "unit"),
    [
        ("/", ""),
        ("", ""),
        ("/init.scope", "init.scope"),
        ("/system.slice/ssh.service", "ssh.service"),
        ("/user.slice/user-0.slice/session-12.scope", "session-12.scope"),
        ("/user.slice/user-1000.slice/user@1000.service/app.slice/x.service", "user@1000.service"),
        ("/system.slice/system-vllm.slice/vllm@glm-5.service", "vllm@glm-5.service"),
        ("/system.slice/vllm-small.service/workers/3", "vllm-small.service"),
        ("/machine.slice/machine-box.scope/payload/system.slice/a.service", "machine-box.scope"),
        ("/user.slice", "user.slice"),
        ("/docker/0123456789abcdef", ""),
        ("/path:with:colons/a.service", "a.service"),
    ],
)
def test_the_outermost_service_or_scope_owns_a_process(cgroup: str, unit: str) -> None:
    assert unit_of(cgroup) == unit


def test_a_path_may_hold_colons() -> None:
    assert cgroup_of("0::/a:b/c.service\n") == "/a:b/c.service"


@pytest.mark.parametrize("name", ["python3", "VLLM::Worker_TP", "a b", "a) R 1 (b", ")", "((", "é"])
def test_a_name_may_hold_blanks_and_parentheses(name: str) -> None:
    rest = " ".join(str(number) for number in range(5, 23))
    assert parse_stat(f"42 ({name}) S 7 {rest}\n") == (name, "S", 7, 22, 20)


def proc(
    root: Path, pid: int, cgroup: str, cmdline: bytes = b"python3\0x.py\0", name: str = "python3"
) -> None:
    folder = root / str(pid)
    folder.mkdir()
    rest = " ".join(["0"] * 17)
    (folder / "stat").write_text(f"{pid} ({name}) S 1 {rest} 4242 0\n")
    (folder / "cmdline").write_bytes(cmdline)
    (folder / "cgroup").write_text(cgroup)


@pytest.mark.parametrize(
    ("first", "other", "expected"),
    [
        ("0::/init.scope\n", PURE, "/system.slice/vllm-small.service"),
        (
            "0::/lxc/box/init.scope\n",
            "0::/lxc/box/system.slice/vllm-small.service\n",
            "/system.slice/vllm-small.service",
        ),
        (
            "1:name=systemd:/machine.slice/machine-box.scope/payload/init.scope\n0::/\n",
            "1:name=systemd:/machine.slice/machine-box.scope/payload/system.slice/a.service\n0::/\n",
            "/system.slice/a.service",
        ),
        ("0::/\n", PURE, "/system.slice/vllm-small.service"),
        ("0::/lxc/box/init.scope\n", "0::/lxc/box2/a.service\n", "/lxc/box2/a.service"),
    ],
    ids=["host", "lxc", "nspawn on a hybrid host", "no systemd", "a neighbour of like name"],
)
def test_what_lies_above_a_container_is_not_part_of_a_path(
    tmp_path: Path, first: str, other: str, expected: str
) -> None:
    proc(tmp_path, 1, first)
    proc(tmp_path, 42, other)
    got = read_process(42, str(tmp_path))
    assert got is not None
    assert (got.cgroup, got.start) == (expected, 4242)


@pytest.mark.parametrize(
    ("cmdline", "argv"),
    [
        (b"", ()),
        (b"VLLM::Worker_TP0\0\0\0\0", ("VLLM::Worker_TP0",)),
        (b"python3\0-c\0\0", ("python3", "-c")),
        (b"\xff\0", ("�",)),
    ],
)
def test_a_title_written_over_the_command_line_is_one_word(
    tmp_path: Path, cmdline: bytes, argv: tuple[str, ...]
) -> None:
    proc(tmp_path, 1, "0::/init.scope\n")
    proc(tmp_path, 42, PURE, cmdline)
    got = read_process(42, str(tmp_path))
    assert got is not None
    assert got.argv == argv


def test_a_kernel_thread_is_titled_by_its_name(tmp_path: Path) -> None:
    proc(tmp_path, 1, "0::/init.scope\n")
    proc(tmp_path, 42, "0::/\n", b"", "kworker/u8:1")
    got = read_process(42, str(tmp_path))
    assert got is not None
    assert got.title == "[kworker/u8:1]"


def test_a_process_that_is_gone_is_none(tmp_path: Path) -> None:
    assert read_process(42, str(tmp_path)) is None
    ended = subprocess.Popen(["/bin/true"])
    ended.wait()
    assert read_process(ended.pid) is None


def test_this_very_process_is_among_all_and_has_its_parent() -> None:
    found = read_processes()
    mine = found[os.getpid()]
    assert mine.parent == os.getppid()
    assert ancestors(mine, found)[0].pid == os.getppid()
    assert mine in descendants(found[os.getppid()], found)
    assert mine not in descendants(mine, found)


def test_a_loop_of_parents_ends() -> None:
    among = {1: process(1, "a", parent=2), 2: process(2, "b", parent=1)}
    assert [p.pid for p in ancestors(among[1], among)] == [2, 1]


def test_a_title_does_not_tell_the_secrets_of_a_command_line() -> None:
    argv = ("vllm", "serve", "m", "--api-key", "sesame", "--hf-token=abc", "--port", "8000")
    title = process(1, *argv).title
    assert title == "vllm serve m --api-key *** --hf-token=*** --port 8000"
