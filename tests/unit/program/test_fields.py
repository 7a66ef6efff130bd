"""Typed fields: what each becomes on the command line, and what does not fit together."""

from __future__ import annotations

from typing import Any

import pytest

from cutover.command import command_lines
from cutover.units import render_unit, unit_environment
from tests.unit.program.samples import deployment, fields
from tests.unit.program.test_deployment import refusal
from tests.unit.program.test_units import value_of

EAGLE = {"algorithm": "EAGLE3", "draft_checkpoint": "/models/draft", "steps": 3}


def command(*words: str, **changes: Any) -> dict[str, Any]:
    values = fields(engine="command", command=list(words), **changes)
    del values["python"]
    return values


@pytest.mark.parametrize(
    ("engine", "changes", "expected"),
    [
        ("vllm", {"context": 131072}, ["--max-model-len", "131072"]),
        ("sglang", {"context": 131072}, ["--context-length", "131072"]),
        ("vllm", {"memory_fraction": 0.92}, ["--gpu-memory-utilization", "0.92"]),
        ("sglang", {"memory_fraction": 0.88}, ["--mem-fraction-static", "0.88"]),
        ("vllm", {"kv_cache_dtype": "auto"}, ["--kv-cache-dtype", "auto"]),
        ("vllm", {"parsers": {"tool_call": "kimi_k2"}}, ["--tool-call-parser", "kimi_k2"]),
        ("sglang", {"parsers": {"reasoning": "kimi_k2"}}, ["--reasoning-parser", "kimi_k2"]),
        ("vllm", {"tokenizer": "/models/t"}, ["--tokenizer", "/models/t"]),
        ("sglang", {"tokenizer": "/models/t"}, ["--tokenizer-path", "/models/t"]),
        ("vllm", {"hf_config": "/models/t"}, ["--hf-config-path", "/models/t"]),
        ("vllm", {"parallel": {"pipeline": 2}}, ["--pipeline-parallel-size", "2"]),
        ("vllm", {"parallel": {"pipeline": 2}}, ["--tensor-parallel-size", "4"]),
        ("vllm", {"parallel": {"data": 4}}, ["--tensor-parallel-size", "2"]),
        ("vllm", {"parallel": {"expert": True}}, ["--enable-expert-parallel"]),
        ("sglang", {"parallel": {"expert": True}}, ["--expert-parallel-size", "8"]),
        (
            "vllm",
            {"speculative": EAGLE},
            [
                "--speculative-config",
                '{"method":"eagle3","model":"/models/draft","num_speculative_tokens":3}',
            ],
        ),
        ("sglang", {"speculative": EAGLE}, ["--speculative-draft-model-path", "/models/draft"]),
        ("sglang", {"speculative": EAGLE}, ["--speculative-num-draft-tokens", "4"]),
        ("sglang", {"speculative": EAGLE}, ["--speculative-eagle-topk", "1"]),
    ],
)
def test_a_typed_field_becomes_the_engines_own_option(
    engine: str, changes: dict[str, Any], expected: list[str]
) -> None:
    assert expected in command_lines(deployment(engine=engine, **changes))


def test_ranks_that_share_their_gpus_are_not_counted_apart() -> None:
    one = deployment(
        engine="sglang", parallel={"data": 8}, args={"enable-dp-attention": True}, gpus=8
    )
    assert ["--tensor-parallel-size", "8"] in command_lines(one)
    assert ["--data-parallel-size", "8"] in command_lines(one)


def test_a_whole_command_is_run_as_it_is_one_option_a_line() -> None:
    from cutover.catalogue import Deployment

    words = ["/usr/bin/llama-server", "-m", "/models/a b.gguf", "--port", "8000", "--flash-attn"]
    one = Deployment.model_validate({"name": "small", **command(*words, args={"seed": 1})})
    assert command_lines(one) == [
        ["/usr/bin/llama-server"],
        ["-m", "/models/a b.gguf"],
        ["--port", "8000"],
        ["--flash-attn"],
        ["--seed", "1"],
    ]
    assert unit_environment(one)["PATH"].startswith("/usr/bin:")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (
            command("conda", "run", "vllm"),
            "command: begins with conda, which systemd does not look up: give the program's "
            "absolute path, without `$`",
        ),
        (command(), "command: is missing: give the program and its arguments as a list"),
        (
            command("/bin/x", context=5),
            "context: is not for engine `command`: write it into command",
        ),
        (
            command("/bin/x", parsers={"reasoning": "x"}),
            "parsers: is not for engine `command`: write it into command",
        ),
        (
            fields(command=["/bin/x"]),
            "command: is for engine `command`: vllm is started by its module",
        ),
        (
            fields(engine="sglang", hf_config="/m"),
            "hf_config: is not for sglang: put config.json beside the checkpoint",
        ),
        (
            fields(parallel={"pipeline": 3}),
            "parallel: pipeline times data is 3, which does not divide 8 GPUs",
        ),
        (
            fields(engine="sglang", speculative={**EAGLE, "draft_tokens": 6}),
            "speculative.draft_tokens: 6 does not fit: with topk 1 it is one more than steps, 4",
        ),
        (
            fields(engine="sglang", speculative={**EAGLE, "topk": 4}),
            "speculative.draft_tokens: is missing: with topk above 1, give a number",
        ),
        (
            fields(speculative={**EAGLE, "topk": 4}),
            "speculative.topk: is not for vllm, which guesses one token a step",
        ),
        (
            fields(env={"VLLM_ENGINE_READY_TIMEOUT_S": "60"}),
            "env.VLLM_ENGINE_READY_TIMEOUT_S: 60 may end a load before timeouts.load (900): "
            "remove it, it is derived",
        ),
        (
            fields(smoke={"concurrency": 30}),
            "smoke.concurrency: 30 at once of 1 requests: raise smoke.count",
        ),
        (
            fields(requires=[{"path": "/x.py", "sha256": "a" * 63}]),
            f'requires[0].sha256: "{"a" * 59}… is not allowed: '
            "give 64 hexadecimal digits, in small letters",
        ),
        (
            fields(requires=[{"path": "/x.py", "sha256": "a" * 64}] * 2),
            "requires: names a file twice: remove one",
        ),
        (
            fields(memory_fraction=1.0),
            "memory_fraction: 1.0 is not allowed: give a number above 0 and below 1, such as 0.92",
        ),
        (
            fields(
                checkpoint="/models/m.gguf", checkpoint_edits={"config.json": {"remove": ["a"]}}
            ),
            "checkpoint_edits: is for a folder, and checkpoint is a file: remove it",
        ),
    ],
)
def test_what_does_not_fit_together_is_named(values: dict[str, Any], expected: str) -> None:
    assert refusal(values) == f"d: {expected}"


@pytest.mark.parametrize(
    ("args", "limit"),
    [({}, 120), ({"shutdown-timeout": 60}, 120), ({"shutdown-timeout": 300}, 330)],
)
def test_the_stop_limit_is_above_the_engines_own_drain_time(
    args: dict[str, Any], limit: int
) -> None:
    assert value_of(render_unit(deployment(args=args)), "TimeoutStopSec") == [str(limit)]


def test_vllm_waits_for_its_own_engine_as_long_as_the_load_may_take() -> None:
    one = deployment(timeouts={"load": 1800})
    assert unit_environment(one)["VLLM_ENGINE_READY_TIMEOUT_S"] == "1800"
    assert value_of(render_unit(one), "TimeoutStartSec") == ["1800"]


@pytest.mark.parametrize(
    ("limits", "memlock", "nofile"),
    [
        ({}, "infinity", "1048576"),
        ({"memlock": "unlimited", "nofile": "1M"}, "infinity", "1048576"),
        ({"memlock": "64G", "nofile": 65536}, str(64 << 30), "65536"),
    ],
)
def test_limits_are_written_as_systemd_takes_them(
    limits: dict[str, Any], memlock: str, nofile: str
) -> None:
    unit = render_unit(deployment(limits=limits))
    assert value_of(unit, "LimitMEMLOCK") == [memlock]
    assert value_of(unit, "LimitNOFILE") == [nofile]


@pytest.mark.parametrize("limits", [{"nofile": 12}, {"nofile": "many"}, {"memlock": -1}])
def test_limits_that_cannot_be_are_refused(limits: dict[str, Any]) -> None:
    assert "is not allowed: give " in refusal(fields(limits=limits))
