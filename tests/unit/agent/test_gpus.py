"""What nvidia-smi prints, and that nothing unknown is ever taken for free."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from cutover_agent.gate import judge, why_not_free
from cutover_agent.gpus import Gpu, Row, parse_gpus, parse_rows
from cutover_agent.nvidia_smi import read_gpus, read_rows
from cutover_agent.scope import Scope

UUID = "GPU-1a2b3c4d-0000-1111-2222-333344445555"
OTHER = "GPU-9f8e7d6c-0000-1111-2222-333344445555"
EIGHT = "".join(f"{i}, GPU-0000000{i}-1111-2222-3333-444455556666, 0\n" for i in range(8))
LOST = "Unable to determine the device handle for GPU0000:BA:00.0: Unknown Error\n"
MISMATCH = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 570\n"


def test_rows_become_gpus_with_their_memory() -> None:
    got = parse_gpus(0, f"0, {UUID}, 71573\n1, {OTHER}, 0\n")
    assert got.gpus == (Gpu(0, UUID, 71573), Gpu(1, OTHER, 0))
    assert (got.problem, got.total_mib) == ("", 71573)


@pytest.mark.parametrize(
    ("code", "stdout", "stderr", "says"),
    [
        pytest.param(0, f"0, {UUID}, [Insufficient Permissions]\n", "", "GPU 0", id="permission"),
        pytest.param(0, f"0, {UUID}, [N/A]\n", "", "[N/A]", id="not available"),
        pytest.param(0, f"0, {UUID}, [GPU is lost]\n", "", "lost", id="lost"),
        pytest.param(0, LOST + EIGHT, "", "BA:00.0", id="a lost card first, exit 0"),
        pytest.param(15, LOST + EIGHT, "", "BA:00.0", id="a lost card first, exit 15"),
        pytest.param(0, EIGHT + LOST, "", "BA:00.0", id="a lost card last"),
        pytest.param(9, "", "", "exits 9", id="empty and failed"),
        pytest.param(9, EIGHT, "", "exits 9", id="good rows, but failed"),
        pytest.param(18, MISMATCH, "", "version mismatch", id="driver updated"),
        pytest.param(6, "No devices were found\n", "", "No devices", id="no devices"),
        pytest.param(0, "", "", "no GPU", id="empty"),
        pytest.param(0, "\n \n", "", "no GPU", id="blank lines"),
        pytest.param(127, "", "it is not installed", "not installed", id="no tool"),
        pytest.param(0, f"0, {UUID}, 0 MiB\n", "", "0 MiB", id="a unit after the number"),
        pytest.param(0, f"0, {UUID}, -1\n", "", "-1", id="a negative number"),
        pytest.param(0, f"0, {UUID}, 0.5\n", "", "0.5", id="a fraction"),
        pytest.param(0, f"0, {UUID}, ²\n", "", "²", id="a digit that is no number"),
        pytest.param(0, f"², {UUID}, 0\n", "", "²", id="an index that is no number"),
        pytest.param(0, f"0, {UUID}\n", "", UUID, id="a missing column"),
        pytest.param(0, f"0, {UUID}, 0\n0, {OTHER}, 0\n", "", "twice", id="an index twice"),
        pytest.param(0, f"0, {UUID}, 0\n1, {UUID}, 0\n", "", "twice", id="a uuid twice"),
        pytest.param(0, "index, uuid, memory.used [MiB]\n", "", "index", id="a header"),
    ],
)
def test_what_is_not_a_complete_answer_is_a_problem_and_never_free(
    code: int, stdout: str, stderr: str, says: str
) -> None:
    got = parse_gpus(code, stdout, stderr)
    assert says in got.problem
    for count in {len(got.gpus), 0, 1, 7, 8}:
        scope = Scope("box", count, got.gpus, idle_mib=1024)
        assert why_not_free(got, scope)
        assert not judge([got] * 10, scope).open


def test_eight_good_rows_are_free_so_that_the_table_above_can_fail() -> None:
    assert judge([parse_gpus(0, EIGHT)] * 3, Scope("box", 8, ())).open


def test_compute_rows_keep_an_unknown_amount_apart_from_zero() -> None:
    text = f"4711, {UUID}, 22000\n31001, {UUID}, [N/A]\n"
    assert parse_rows(0, text) == (Row(4711, UUID, 22000), Row(31001, UUID, None))
    assert parse_rows(0, "") == ()


@pytest.mark.parametrize(
    ("code", "stdout"),
    [(9, ""), (18, MISMATCH), (0, LOST), (0, "[Not Found], GPU-1, 3\n"), (0, "1, GPU-1\n")],
)
def test_a_process_list_that_is_not_one_is_unknown_rather_than_empty(
    code: int, stdout: str
) -> None:
    assert parse_rows(code, stdout) is None


def fake_smi(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = folder / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_the_tool_is_asked_for_what_the_parser_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_smi(tmp_path, f'echo "$@" >> {tmp_path}/asked; echo "0, {UUID}, 12"', monkeypatch)
    assert read_gpus().gpus == (Gpu(0, UUID, 12),)
    assert read_rows() == (Row(0, UUID, 12),)
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked == [
        "--query-gpu=index,uuid,memory.used --format=csv,noheader,nounits",
        "--query-compute-apps=pid,gpu_uuid,used_memory --format=csv,noheader,nounits",
    ]


def test_a_tool_that_hangs_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_smi(tmp_path, "exec sleep 60", monkeypatch)
    assert "no answer" in read_gpus(0.2).problem
    assert read_rows(0.2) is None


def test_a_missing_tool_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "not installed" in read_gpus().problem
    assert read_rows() is None


def test_a_tool_that_cannot_be_run_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nvidia-smi").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert read_gpus().problem
    assert read_rows() is None


def test_bytes_that_are_no_text_are_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_smi(tmp_path, r"printf '\377\376 broken\n'", monkeypatch)
    assert read_gpus().problem
    assert read_rows() is None
