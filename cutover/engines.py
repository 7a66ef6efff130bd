"""The engines: how each is started, and which of its options are written from typed fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Engine:
    """One engine's command line."""

    module: str
    """Python module that is the server."""
    model: str
    """Option that takes the checkpoint."""
    draft: str | None
    """Option that takes the draft checkpoint of speculative decoding, where there is one."""
    most_names: int | None
    """How many served names it takes; None for any number."""
    refused: Mapping[str, str]
    """Options that `args` may not hold, and the sentence's end that says what to do instead."""


def _from(field: str) -> str:
    return f"is written from {field}: set that instead"


_COMMON = {
    "model": _from("checkpoint"),
    "served-model-name": _from("served_names"),
    "host": _from("listen.host"),
    "port": _from("listen.port"),
    "tensor-parallel-size": _from("gpus"),
    "tp": _from("gpus"),
}

ENGINES = {
    "vllm": Engine(
        module="vllm.entrypoints.openai.api_server",
        model="--model",
        draft=None,
        most_names=None,
        refused={
            **_COMMON,
            "uds": "would replace the port that is asked for readiness: remove it",
            "api-key": "would show the key to every local user: list VLLM_API_KEY in secrets",
        },
    ),
    "sglang": Engine(
        module="sglang.launch_server",
        model="--model-path",
        draft="--speculative-draft-model-path",
        most_names=1,
        refused={
            **_COMMON,
            "model-path": _from("checkpoint"),
            "tp-size": _from("gpus"),
            "speculative-draft-model-path": _from("draft_checkpoint"),
            "speculative-draft-model": _from("draft_checkpoint"),
            "api-key": "would show the key to every local user: put it into a file for `config`",
            "admin-api-key": "would show the key to every local user: put it into a file for "
            "`config`",
        },
    ),
}
