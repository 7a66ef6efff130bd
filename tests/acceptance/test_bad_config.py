"""Bad config ends in one sentence of ours, soon, and before any connection."""

from __future__ import annotations

import resource
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.stack import SGLANG, UNITS, VLLM, Stack

BOX = {"address": "127.0.0.1", "gpus": 8}
FACTOR = 1.6
"""Bad config may cost this much of an empty program: 1.1 s of those are Pulumi's own."""

Case = tuple[Callable[[Stack], None], str]


def config(**values: Any) -> Callable[[Stack], None]:
    return lambda stack: stack.configure(**values)


def edited(deployment: str, old: str, new: str) -> Callable[[Stack], None]:
    return lambda stack: stack.edit(deployment, old, new)


CASES: dict[str, Case] = {
    "unknown model": (
        config(active="minimax"),
        f"Pulumi.test.yaml: active: no deployment is named minimax: did you mean {VLLM}? "
        f"There is {SGLANG}, {VLLM}",
    ),
    "missing field": (
        config(hosts={"box": {"address": "127.0.0.1"}}),
        "Pulumi.test.yaml: hosts.box.gpus: is missing: give a whole number from 1 to 16",
    ),
    "unknown field": (
        config(hosts={"box": {**BOX, "adress": "x"}}),
        "Pulumi.test.yaml: hosts.box.adress: is unknown: did you mean address?",
    ),
    "wrong type": (
        config(hosts={"box": {**BOX, "gpus": "eight"}}),
        'Pulumi.test.yaml: hosts.box.gpus: "eight" is not allowed: '
        "give a whole number from 1 to 16",
    ),
    "unknown key of our namespace": (
        config(activ=SGLANG),
        "Pulumi.test.yaml: activ: is unknown: did you mean active?",
    ),
    "two hosts with one address and port": (
        config(hosts={"box": BOX, "other": BOX}),
        "Pulumi.test.yaml: hosts.other: has the address and port of hosts.box "
        "(127.0.0.1, 22): give each host its own",
    ),
    "two deployments of one unit": (
        edited(VLLM, UNITS[VLLM], UNITS[SGLANG]),
        f"deployments/{VLLM}.yaml: unit: ",
    ),
    "wrong value in a deployment": (
        edited(VLLM, "engine: vllm", "engine: vlm"),
        f"deployments/{VLLM}.yaml: engine: ",
    ),
}


@pytest.fixture(scope="module")
def empty_program_seconds(tmp_path_factory: pytest.TempPathFactory) -> float:
    """Processor time of a preview of a program that does nothing."""
    stack = Stack(tmp_path_factory.mktemp("empty"))
    stack.configure(active=SGLANG, hosts={"box": BOX})
    (stack.folder / "__main__.py").unlink()
    (stack.folder / "__main__.py").write_text("import pulumi\n")
    before = _cpu_seconds()
    stack.preview()
    return _cpu_seconds() - before


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_bad_config_is_one_sentence_before_any_connection(
    case: Case, tmp_path: Path, empty_program_seconds: float
) -> None:
    break_it, sentence = case
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        stack = Stack(tmp_path)
        stack.configure(active=SGLANG, hosts={"box": {**BOX, "port": server.getsockname()[1]}})
        break_it(stack)
        before = _cpu_seconds()
        run = stack.preview(fails=True)
        # Processor time: how long it takes a person who has the machine for themselves.
        assert _cpu_seconds() - before < FACTOR * empty_program_seconds
        with pytest.raises(BlockingIOError):
            server.accept()
    diagnostics = run.text.partition("Diagnostics:")[2]
    errors = [line.strip() for line in diagnostics.splitlines() if "error:" in line]
    assert len(errors) == 1, run.text
    assert errors[0].startswith(f"error: {sentence}"), errors[0]


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
