"""What the engines' own logs say: how far a load is, and why it failed."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from cutover_agent import listener, probe, serving, systemd
from cutover_agent.serving import NotServing, await_ready, cause, is_right, progress, why_unused
from cutover_agent.store import Serving
from cutover_agent.systemd import UnitState
from tests.unit.agent.samples import order, reading

SHARDS = "Loading safetensors checkpoint shards:"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], "loading"),
        (["INFO 11-30 08:00:00 [api_server.py:1712] vLLM API server version 0.11.0"], "loading"),
        ([f"{SHARDS}  31% Completed | 37/119 [03:32<07:50,  5.74s/it]"], "load 37/119 shards"),
        (
            [f"(Worker_TP0 pid=812) {SHARDS}   0% Completed | 0/119 [00:00<?, ?it/s]"],
            "load 0/119 shards",
        ),
        (
            [f"{SHARDS} 100% Completed | 46/46 [01:02<00:00,  1.35s/it]", "", "INFO other"],
            "load 46/46 shards",
        ),
        (["Multi-thread loading shards:  12% Completed | 5/41 [00:07<00:50]"], "load 5/41 shards"),
        (
            [f"{SHARDS}  10% Completed | 1/10", f"{SHARDS}  20% Completed | 2/10"],
            "load 2/10 shards",
        ),
        ([f"{SHARDS}   0% | 0/9\r{SHARDS}  44% | 4/9\r{SHARDS}  55% | 5/9"], "load 5/9 shards"),
        (["Capturing CUDA graph shapes:  50%|#####     | 17/35 [00:05<00:05]"], "loading"),
    ],
)
def test_progress_is_the_newest_count_of_shards(lines: list[str], expected: str) -> None:
    assert progress(lines) == expected


CORE = "(EngineCore_DP0 pid=812) ERROR 11-30 08:00:05 [core.py:718]"
API = "(APIServer pid=700)"
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB. "
    "GPU 0 has a total capacity of 94.97 GiB of which 1.04 GiB is free."
)
VLLM_LOG = f"""
{API} INFO 11-30 08:00:00 [utils.py:233] non-default args: {{'model': '/models/glm5'}}
{CORE} EngineCore failed to start.
{CORE} Traceback (most recent call last):
{CORE}   File "/opt/vllm/lib/vllm/v1/engine/core.py", line 709, in run_engine_core
{CORE}     engine_core = EngineCoreProc(*args, **kwargs)
{CORE}                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
{CORE}     raise e from None
{CORE} {OOM}
(EngineCore_DP0 pid=812) Process EngineCore_DP0:
(EngineCore_DP0 pid=812) Traceback (most recent call last):
(EngineCore_DP0 pid=812)   File "/opt/vllm/lib/vllm/v1/engine/core.py", line 722, in run_engine_core
(EngineCore_DP0 pid=812)     raise e
(EngineCore_DP0 pid=812) {OOM}
{API} Traceback (most recent call last):
{API}   File "/opt/vllm/lib/vllm/v1/engine/core_client.py", line 602, in __init__
{API}     super().__init__(
{API}   File "/opt/vllm/lib/vllm/v1/engine/utils.py", line 785, in wait_for_engine_startup
{API}     raise RuntimeError("Engine core initialization failed. "
{API} RuntimeError: Engine core initialization failed. See root cause above.
/usr/lib/python3.12/multiprocessing/resource_tracker.py:279: UserWarning: resource_tracker: leaked
  warnings.warn(
""".splitlines()
SGLANG_LOG = """
[2026-11-30 08:00:01] server_args=ServerArgs(model_path='/models/kimi', tp_size=8)
[2026-11-30 08:00:09 TP2] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/sglang/lib/sglang/srt/managers/scheduler.py", line 3130, in run_scheduler_process
    scheduler = Scheduler(
                ^^^^^^^^^^
  File "/opt/sglang/lib/sglang/srt/model_executor/model_runner.py", line 559, in init
    raise ValueError(
ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes.

[2026-11-30 08:00:09] Received sigquit from a child process. It usually means the child failed.
""".splitlines()


@pytest.mark.parametrize(
    ("lines", "root"),
    [
        (VLLM_LOG, "CUDA out of memory. Tried to allocate 1.96 GiB"),
        (SGLANG_LOG, "ValueError: The memory capacity is unbalanced."),
        (["api_server.py: error: unrecognized arguments: --foo"], "unrecognized arguments: --foo"),
        (["x: Failed to execute /opt/x: No such file or directory"], "No such file or directory"),
    ],
    ids=["vllm out of memory", "sglang", "bad flag", "missing program"],
)
def test_the_root_cause_is_among_the_few_lines_shown(lines: list[str], root: str) -> None:
    shown = cause(lines)
    assert len(shown) <= 5
    assert any(root in line for line in shown), shown


@pytest.mark.parametrize("lines", [VLLM_LOG, SGLANG_LOG])
def test_frames_of_a_traceback_are_not_shown(lines: list[str]) -> None:
    for line in cause(lines):
        assert 'File "' not in line
        assert "raise " not in line


def test_a_log_without_a_telling_line_gives_its_last_ones() -> None:
    assert cause(["a", "", " b ", "c", "d"])[-2:] == ["c", "d"]
    assert cause([]) == []


def test_a_long_line_is_cut() -> None:
    assert [len(line) for line in cause(["error " + "x" * 5000])] == [300]


@pytest.mark.parametrize(
    ("change", "right"),
    [
        ({}, True),
        ({"policy": "managed"}, True),
        ({"unit_digest": "1" * 64}, False),
        ({"deployment": "big"}, False),
        ({"unit": "other.service"}, False),
        ({"gpus": (0,)}, False),
        ({"gpu_uuids": ("GPU-1",)}, False),
    ],
)
def test_the_right_model_is_the_one_that_runs_the_ordered_files(
    change: dict[str, object], right: bool
) -> None:
    was = Serving(order(), "e" * 64, "t", 1.0)
    assert is_right(order(**change), "e" * 64, was) is right
    assert not is_right(order(**change), "f" * 64, was)
    assert not is_right(order(**change), "e" * 64, None)


LOADING = UnitState("active", "running", 42, 3, "run", "disabled", "success")


@pytest.mark.parametrize(
    "crashed",
    [
        replace(LOADING, active="failed", sub="failed", result="exit-code"),
        replace(LOADING, active="activating", sub="auto-restart"),
        replace(LOADING, restarts=4),
    ],
    ids=["it has ended", "systemd waits to start it again", "systemd has started it again"],
)
def test_a_crash_while_loading_is_seen_at_once_and_not_at_the_deadline(
    crashed: UnitState, monkeypatch: pytest.MonkeyPatch
) -> None:
    states, slept = [crashed, LOADING, LOADING], list[float]()
    monkeypatch.setattr(systemd, "state", lambda _: states.pop())
    monkeypatch.setattr(systemd, "journal", lambda *_: ["ValueError: no such quantization"])
    monkeypatch.setattr(probe, "ready", lambda *_: False)
    monkeypatch.setattr(time, "sleep", slept.append)
    with pytest.raises(NotServing, match=r"(?s)crashed while loading.*no such quantization"):
        await_ready(order(), None, lambda _: None, str)
    assert len(slept) == 1, "it is seen at the next look"


@pytest.mark.parametrize(
    ("stranger", "used", "says"),
    [
        ("pid 7 (nginx) listens on 8000", 72500, "is not what answers: pid 7"),
        ("", 2, "answers, but not from its GPUs: GPU 0 2 MiB"),
    ],
)
def test_an_answer_of_another_process_or_without_the_gpus_is_no_service(
    stranger: str, used: int, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(systemd, "state", lambda _: LOADING)
    monkeypatch.setattr(probe, "ready", lambda *_: True)
    monkeypatch.setattr(listener, "stranger", lambda *_: stranger)
    monkeypatch.setattr(serving, "read_gpus", lambda: reading(*(used,) * 8))
    with pytest.raises(NotServing, match=says):
        await_ready(order(), None, lambda _: None, str)


@pytest.mark.parametrize(
    ("used", "says"),
    [
        ((72500,) * 8, ""),
        ((72500,) * 7, "gpus: 7 is no GPU of this host"),
        ((72500,) * 6 + (0, 2), "GPU 6 0 MiB, GPU 7 2 MiB"),
    ],
)
def test_a_model_that_does_not_use_its_gpus_is_seen(used: tuple[int, ...], says: str) -> None:
    told = why_unused(reading(*used), order(gpus=tuple(range(8))))
    assert told.startswith(says) and bool(told) == bool(says)


def test_gpus_that_cannot_be_read_are_not_taken_for_used() -> None:
    assert why_unused(reading(problem="no answer"), order()) == "no answer"
