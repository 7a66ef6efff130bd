"""The command line of a deployment: one line an option, each a list of arguments."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cutover.engines import ENGINES, Engine
from cutover.option import option

if TYPE_CHECKING:
    from cutover.deployment import Deployment


def command_lines(deployment: Deployment) -> list[list[str]]:
    """The program, then its options in order; where it listens comes last.

    The last line differs from the others in a unit (nothing follows it), so it has to be one that
    every deployment has: then an option that is added or removed changes no other line.
    """
    further = [option(name, value) for name, value in deployment.args.items()]
    if deployment.engine == "command":
        return [line for line in (*_grouped(deployment.command), *further) if line]
    engine = ENGINES[deployment.engine]
    listen = deployment.listen
    lines = [
        [deployment.python or "", "-m", engine.module],
        [engine.option("checkpoint"), deployment.model_path],
        [engine.option("served_names"), *deployment.served_names],
        [engine.option("gpus"), str(deployment.tensor_parallel)],
        *_typed(deployment, engine),
        *_speculative(deployment, engine),
        *_key_file(deployment),
        *further,
        [engine.option("listen.host"), listen.host, engine.option("listen.port"), str(listen.port)],
    ]
    return [line for line in lines if line]


def _typed(one: Deployment, engine: Engine) -> list[list[str]]:
    """The options of the fields that most deployments leave out."""
    values = {
        "parallel.pipeline": one.parallel.pipeline if one.parallel.pipeline > 1 else None,
        "parallel.data": one.parallel.data if one.parallel.data > 1 else None,
        "tokenizer": one.tokenizer,
        "hf_config": one.hf_config,
        "context": one.context,
        "kv_cache_dtype": one.kv_cache_dtype,
        "memory_fraction": one.memory_fraction,
        "parsers.tool_call": one.parsers.tool_call,
        "parsers.reasoning": one.parsers.reasoning,
    }
    lines = [[engine.option(k), str(v)] for k, v in values.items() if v is not None]
    if one.parallel.expert:
        flag = engine.option("parallel.expert")
        lines.append([flag] if one.engine == "vllm" else [flag, str(one.tensor_parallel)])
    return lines


def _speculative(one: Deployment, engine: Engine) -> list[list[str]]:
    wanted = one.speculative
    if wanted is None:
        return []
    if engine.draft_in_json:
        config = {"method": wanted.algorithm.lower(), "model": wanted.draft_checkpoint}
        found = {k: v for k, v in config.items() if v} | {"num_speculative_tokens": wanted.steps}
        text = json.dumps(found, separators=(",", ":"), ensure_ascii=False)
        return [[engine.option("speculative"), text]]
    values = {
        "speculative.algorithm": wanted.algorithm,
        "speculative.draft_checkpoint": wanted.draft_checkpoint,
        "speculative.steps": wanted.steps,
        "speculative.topk": wanted.topk,
        "speculative.draft_tokens": wanted.draft_tokens or wanted.steps + 1,
    }
    return [[engine.option(k), str(v)] for k, v in values.items() if v is not None]


def _key_file(one: Deployment) -> list[list[str]]:
    """SGLang reads its API key from no variable, and from a command line everybody can."""
    if one.engine != "sglang" or "SGLANG_API_KEY" not in one.secrets:
        return []
    return [["--config", f"/etc/cutover/{one.name}.key.yaml"]]


def _grouped(words: list[str]) -> list[list[str]]:
    """A whole command by lines: the program, then each option with what belongs to it."""
    lines: list[list[str]] = []
    for word in words:
        if not lines or word.startswith("-"):
            lines.append([])
        lines[-1].append(word)
    return lines
