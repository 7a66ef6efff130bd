"""The engines: how each is started, and which of its options are written from typed fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Engine:
    """One engine's command line."""

    module: str = ""
    """Python module that is the server; empty where the deployment gives the whole command."""
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Typed field to its option: the name that is written, then other names of the same."""
    most_names: int | None = None
    """How many served names it takes; None for any number."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Options that would show a secret, and what to do instead."""
    draft_in_json: bool = False
    """Whether one option takes all of speculative decoding as JSON."""

    @property
    def refused(self) -> dict[str, str]:
        """Options that `args` may not hold, and the sentence's end that says what to do."""
        typed = {
            option: f"is written from {name}: set that instead"
            for name, options in self.options.items()
            for option in options
        }
        return {**typed, **self.keys}

    def option(self, name: str) -> str:
        """The option of a typed field, with its dashes; empty where the engine has none."""
        return f"--{self.options[name][0]}" if name in self.options else ""


_SECRET = "would show the key to every local user: "

_COMMON = {
    "served_names": ("served-model-name",),
    "listen.host": ("host",),
    "listen.port": ("port",),
    "gpus": ("tensor-parallel-size", "tp-size", "tp"),
    "parallel.pipeline": ("pipeline-parallel-size", "pp-size", "pp"),
    "parallel.data": ("data-parallel-size", "dp-size", "dp"),
    "parsers.tool_call": ("tool-call-parser",),
    "parsers.reasoning": ("reasoning-parser",),
    "kv_cache_dtype": ("kv-cache-dtype",),
}

ENGINES = {
    "vllm": Engine(
        module="vllm.entrypoints.openai.api_server",
        options={
            "checkpoint": ("model",),
            **_COMMON,
            "parallel.expert": ("enable-expert-parallel",),
            "context": ("max-model-len",),
            "memory_fraction": ("gpu-memory-utilization",),
            "tokenizer": ("tokenizer",),
            "hf_config": ("hf-config-path",),
            "speculative": ("speculative-config",),
        },
        keys={
            "uds": "would replace the port that is asked for readiness: remove it",
            "api-key": _SECRET + "list VLLM_API_KEY in secrets",
        },
        draft_in_json=True,
    ),
    "sglang": Engine(
        module="sglang.launch_server",
        options={
            "checkpoint": ("model-path", "model"),
            **_COMMON,
            "parallel.expert": ("expert-parallel-size", "ep-size", "ep"),
            "context": ("context-length",),
            "memory_fraction": ("mem-fraction-static",),
            "tokenizer": ("tokenizer-path",),
            "speculative.algorithm": ("speculative-algorithm",),
            "speculative.draft_checkpoint": (
                "speculative-draft-model-path",
                "speculative-draft-model",
            ),
            "speculative.steps": ("speculative-num-steps",),
            "speculative.topk": ("speculative-eagle-topk",),
            "speculative.draft_tokens": ("speculative-num-draft-tokens",),
        },
        most_names=1,
        keys={
            "api-key": _SECRET + "list SGLANG_API_KEY in secrets",
            "admin-api-key": _SECRET + "put it into a file for `config`",
        },
    ),
    "command": Engine(),
}
