"""Deployments: the sentence for every kind of wrong field."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from cutover.catalogue import Deployment
from cutover.errors import config_error
from tests.unit.program.samples import deployment, fields

PATH = "an absolute path without quotes, backslashes, doubled or closing slashes, `.` or `..`"
GPUS = "give a count from 1 to 16, or a list of different indices below 16"
SECONDS = "give whole seconds from 1 to 86400"
UNIT = "give a unit name such as vllm-model.service, not beginning with cutover"
NAMES = "give at least one name of letters, digits and any of ._:/@+-"


def refusal(values: dict[str, Any]) -> str:
    with pytest.raises(ValidationError) as raised:
        Deployment.model_validate({"name": "small", **values})
    return str(config_error(raised.value, Deployment, "d"))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"engine": "vlm"}, 'engine: "vlm" is not allowed: give vllm, sglang or command'),
        ({"unit": "a.timer"}, f'unit: "a.timer" is not allowed: {UNIT}'),
        ({"unit": "../a.service"}, f'unit: "../a.service" is not allowed: {UNIT}'),
        ({"unit": "cutover-x.service"}, f'unit: "cutover-x.service" is not allowed: {UNIT}'),
        ({"python": "python3"}, f'python: "python3" is not allowed: give {PATH}'),
        (
            {"python": "/opt/$x/python3"},
            "python: holds a `$`, which systemd does not take in a program: rename it",
        ),
        ({"checkpoint": "/m/../x"}, f'checkpoint: "/m/../x" is not allowed: give {PATH}'),
        ({"checkpoint": "/m/"}, f'checkpoint: "/m/" is not allowed: give {PATH}'),
        ({"checkpoint": "/m\\"}, f'checkpoint: "/m\\\\" is not allowed: give {PATH}'),
        (
            {"working_directory": "~/x"},
            f'working_directory: "~/x" is not allowed: give {PATH}',
        ),
        ({"served_names": []}, f"served_names: is empty: {NAMES}"),
        ({"served_names": "a"}, f'served_names: "a" is not allowed: {NAMES}'),
        ({"served_names": ["a", "b c"]}, f'served_names[1]: "b c" is not allowed: {NAMES}'),
        ({"gpus": 0}, f"gpus: 0 is not allowed: {GPUS}"),
        ({"gpus": 17}, f"gpus: 17 is not allowed: {GPUS}"),
        ({"gpus": True}, f"gpus: true is not allowed: {GPUS}"),
        ({"gpus": [1, 1]}, f"gpus: [1, 1] is not allowed: {GPUS}"),
        ({"gpus": [16]}, f"gpus: [16] is not allowed: {GPUS}"),
        ({"gpus": []}, f"gpus: [] is not allowed: {GPUS}"),
        (
            {"listen": {"port": 70000}},
            "listen.port: 70000 is not allowed: give a whole number from 1 to 65535",
        ),
        (
            {"listen": {"host": "0.0.0.0:80"}},
            'listen.host: "0.0.0.0:80" is not allowed: '
            "give an IP address such as 0.0.0.0 or ::, or a host name",
        ),
        ({"listen": {"prot": 1}}, "listen.prot: is unknown: did you mean port?"),
        ({"timeouts": {"load": 0}}, f"timeouts.load: 0 is not allowed: {SECONDS}"),
        (
            {"timeouts": {"stop": "infinity"}},
            f'timeouts.stop: "infinity" is not allowed: {SECONDS}',
        ),
        (
            {"timeouts": {"stop": 30}, "args": {"shutdown-timeout": 120}},
            "timeouts.stop: 30 leaves no time after args.shutdown-timeout (120): raise it, or "
            "leave it out",
        ),
        (
            {"restart": {"policy": False}},
            "restart.policy: false is not allowed: give `no`, on-failure or always, in quotes",
        ),
        (
            {"smoke": {"max_tokens": 0}},
            "smoke.max_tokens: 0 is not allowed: give a whole number from 1 to 32768",
        ),
        ({"user": "Root"}, 'user: "Root" is not allowed: give the name of a user on the host'),
        (
            {"description": "ends in \\"},
            'description: "ends in \\\\" is not allowed: '
            "give one line of text that does not end in a backslash",
        ),
        ({"description": "a\nb"}, "description: holds a line break: write it on one line"),
        ({"chekpoint": "/m"}, "chekpoint: is unknown: did you mean checkpoint?"),
        (
            {"draft_checkpoint": "/m"},
            "draft_checkpoint: is unknown: did you mean checkpoint?",
        ),
        (
            {"engine": "sglang", "served_names": ["a", "b"]},
            "served_names: holds several names: sglang serves under one, give one",
        ),
    ],
)
def test_a_wrong_field_is_named_with_what_is_allowed(
    changes: dict[str, Any], expected: str
) -> None:
    assert refusal(fields(**changes)) == f"d: {expected}"


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ("--a b", "args: this value is not allowed: give names of options with their values"),
        ({"port": 1}, "args.port: is written from listen.port: set that instead"),
        ({"host": "::"}, "args.host: is written from listen.host: set that instead"),
        ({"model": "/m"}, "args.model: is written from checkpoint: set that instead"),
        (
            {"served-model-name": "x"},
            "args.served-model-name: is written from served_names: set that instead",
        ),
        (
            {"tensor-parallel-size": 4},
            "args.tensor-parallel-size: is written from gpus: set that instead",
        ),
        (
            {"api-key": "s3cret"},
            "args.api-key: would show the key to every local user: list VLLM_API_KEY in secrets",
        ),
        (
            {"--max_model_len": 1},
            "args.--max_model_len: is not the name of an option: write it without dashes, "
            "as `max-model-len`",
        ),
        (
            {"a": "x\r"},
            "args.a: holds a carriage return, as files from Windows have: remove it",
        ),
        ({"a": "x\0"}, "args.a: holds a NUL character, which no process can be given: remove it"),
        ({"a": "\ufffe"}, "args.a: holds U+FFFE, which systemd refuses: remove it"),
        ({"a": "\ud800"}, "args.a: holds U+D800, which systemd refuses: remove it"),
        ({"a": "x" * 131_001}, "args.a: is longer than 131000 bytes: put it into a file"),
        ({"a": []}, "args.a: is a list of something else than text and numbers: correct it"),
        ({"a": [True]}, "args.a: is a list of something else than text and numbers: correct it"),
        ({"a": b"x"}, "args.a: is not text, a number, a list or a mapping: write it in quotes"),
        (
            {"a": {"b": float("nan")}},
            "args.a: is not text, a number, a list or a mapping: write it in quotes",
        ),
    ],
)
def test_an_argument_that_cannot_be_is_refused(args: Any, expected: str) -> None:
    assert refusal(fields(args=args)) == f"d: {expected}"


@pytest.mark.parametrize(
    ("option", "field"),
    [
        ("model-path", "checkpoint"),
        ("tp-size", "gpus"),
        ("tp", "gpus"),
        ("speculative-draft-model-path", "speculative.draft_checkpoint"),
        ("speculative-num-steps", "speculative.steps"),
        ("context-length", "context"),
        ("mem-fraction-static", "memory_fraction"),
        ("ep-size", "parallel.expert"),
    ],
)
def test_sglang_has_its_own_options_for_the_typed_fields(option: str, field: str) -> None:
    assert refusal(fields(engine="sglang", args={option: "x"})) == (
        f"d: args.{option}: is written from {field}: set that instead"
    )


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"env": {"A": 8}},
            "env.A: 8 is not allowed: give names of variables with their values as text, "
            "in quotes where they look like numbers or true and false",
        ),
        (
            {"env": {"A": False}},
            "env.A: false is not allowed: give names of variables with their values as text, "
            "in quotes where they look like numbers or true and false",
        ),
        (
            {"env": {"A": "x\r"}},
            "env.A: holds a carriage return, as files from Windows have: remove it",
        ),
        (
            {"env": {"A-B": "x"}},
            "env.A-B: is not a variable name: use letters, digits and underscores",
        ),
        (
            {"env": {"CUDA_VISIBLE_DEVICES": "0"}},
            "env.CUDA_VISIBLE_DEVICES: is written from gpus: set that instead",
        ),
        (
            {"env": {"T": "x"}, "secrets": ["T"]},
            "env.T: is in secrets too: remove one of the two",
        ),
        ({"secrets": ["T", "T"]}, "secrets: names a variable twice: remove one"),
        (
            {"secrets": {"T": "s3cret"}},
            "secrets: a mapping is not allowed: give a list of names of variables",
        ),
    ],
)
def test_environment_that_cannot_be_is_refused(changes: dict[str, Any], expected: str) -> None:
    assert refusal(fields(**changes)) == f"d: {expected}"


@pytest.mark.parametrize("name", fields())
def test_a_missing_field_is_named(name: str) -> None:
    values = fields()
    del values[name]
    assert refusal(values).startswith(f"d: {name}: is missing: give ")


def test_several_contradictions_are_told_at_once() -> None:
    told = refusal(fields(args={"port": 1, "host": "x"}, env={"CUDA_VISIBLE_DEVICES": "0"}))
    assert [line.split(":")[1] for line in told.split("\n")] == [
        " args.host",
        " args.port",
        " env.CUDA_VISIBLE_DEVICES",
    ]


@pytest.mark.parametrize(
    ("given", "expected"),
    [(2, (0, 1)), ([6, 7], (6, 7)), ([3, 1], (3, 1)), (16, tuple(range(16)))],
)
def test_gpus_are_a_count_or_indices(given: Any, expected: tuple[int, ...]) -> None:
    assert deployment(gpus=given).gpus == expected


def test_eight_gpus_and_port_8000_are_what_nobody_has_to_say() -> None:
    assert deployment().gpus == tuple(range(8))
    assert (deployment().listen.host, deployment().listen.port) == ("0.0.0.0", 8000)
    assert deployment().timeouts.load == 900


@pytest.mark.parametrize(
    ("written", "bound"), [("::", "::"), ("[::1]", "::1"), ("localhost", "localhost")]
)
def test_the_address_to_bind_loses_its_brackets(written: str, bound: str) -> None:
    assert deployment(listen={"host": written}).listen.host == bound
