"""What is wrong between the fields of one deployment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cutover.additions import additions_refused
from cutover.engine_names import misspelt
from cutover.engines import ENGINES

if TYPE_CHECKING:
    from cutover.deployment import Deployment

Fault = tuple[tuple[str, ...], str]
"""The path of a field, and the end of a sentence about it."""

READY_TIMEOUT = "VLLM_ENGINE_READY_TIMEOUT_S"
"""How long vLLM's API server waits until its engine is ready, in seconds; 600 where it is not set.

Not every release counts the whole load.
"""


def contradictions(one: Deployment) -> Iterator[Fault]:
    """Each fault of a deployment whose fields are legal one by one."""
    yield from _command(one)
    yield from _parallel(one)
    yield from _environment(one)
    yield from _limits(one)
    yield from additions_refused(one.additions)
    if one.engine_version:
        yield from misspelt(one)


def _command(one: Deployment) -> Iterator[Fault]:
    engine = ENGINES[one.engine]
    refused = engine.refused
    for name in one.args.keys() & refused.keys():
        yield ("args", name), refused[name]
    if one.engine == "command":
        yield from _whole_command(one)
    else:
        if one.command:
            yield ("command",), f"is for engine `command`: {one.engine} is started by its module"
        if not one.python:
            yield ("python",), f"is missing: give the Python in which {one.engine} is installed"
    if engine.most_names and len(one.served_names) > engine.most_names:
        yield ("served_names",), f"holds several names: {one.engine} serves under one, give one"
    if "$" in (one.python or ""):
        yield ("python",), "holds a `$`, which systemd does not take in a program: rename it"
    if one.hf_config and one.engine == "sglang":
        yield ("hf_config",), "is not for sglang: put config.json beside the checkpoint"
    yield from _speculative(one)


def _whole_command(one: Deployment) -> Iterator[Fault]:
    typed = ("python", "context", "kv_cache_dtype", "memory_fraction", "speculative", "tokenizer")
    for name in (*typed, "hf_config", "engine_version"):
        if getattr(one, name) is not None:
            yield (name,), "is not for engine `command`: write it into command"
    for name in ("parallel", "parsers"):
        if getattr(one, name).model_fields_set:
            yield (name,), "is not for engine `command`: write it into command"
    if not one.command:
        yield ("command",), "is missing: give the program and its arguments as a list"
    elif not one.command[0].startswith("/") or "$" in one.command[0]:
        yield (
            ("command",),
            f"begins with {one.command[0]}, which systemd does not look up: give the program's "
            "absolute path, without `$`",
        )


def _speculative(one: Deployment) -> Iterator[Fault]:
    wanted = one.speculative
    if wanted is None:
        return
    if one.engine == "vllm":
        for name, value in (("topk", wanted.topk > 1), ("draft_tokens", wanted.draft_tokens)):
            if value:
                yield ("speculative", name), "is not for vllm, which guesses one token a step"
    elif wanted.topk == 1 and (wanted.draft_tokens or wanted.steps + 1) != wanted.steps + 1:
        yield (
            ("speculative", "draft_tokens"),
            f"{wanted.draft_tokens} does not fit: with topk 1 it is one more than steps, "
            f"{wanted.steps + 1}",
        )
    elif wanted.topk > 1 and wanted.draft_tokens is None:
        yield ("speculative", "draft_tokens"), "is missing: with topk above 1, give a number"


def _parallel(one: Deployment) -> Iterator[Fault]:
    parts = one.parallel.pipeline * one.parallel.data_groups(one.args, one.engine)
    if len(one.gpus) % parts:
        yield (
            ("parallel",),
            f"pipeline times data is {parts}, which does not divide {len(one.gpus)} GPUs",
        )


def _environment(one: Deployment) -> Iterator[Fault]:
    if "CUDA_VISIBLE_DEVICES" in one.env:
        yield ("env", "CUDA_VISIBLE_DEVICES"), "is written from gpus: set that instead"
    for name in set(one.secrets) & one.env.keys():
        yield ("env", name), "is in secrets too: remove one of the two"
    if len(set(one.secrets)) < len(one.secrets):
        yield ("secrets",), "names a variable twice: remove one"
    paths = [required.path for required in one.requires]
    if len(set(paths)) < len(paths):
        yield ("requires",), "names a file twice: remove one"
    if one.checkpoint_edits and one.checkpoint.endswith(".gguf"):
        yield ("checkpoint_edits",), "is for a folder, and checkpoint is a file: remove it"


def _limits(one: Deployment) -> Iterator[Fault]:
    limits = one.timeouts
    drain = one.drain_seconds
    if limits.stop and drain >= limits.stop:
        yield (
            ("timeouts", "stop"),
            f"{limits.stop} leaves no time after args.shutdown-timeout ({drain}): raise it, or "
            "leave it out",
        )
    own = one.env.get(READY_TIMEOUT, "")
    if own.isdigit() and int(own) < limits.load:
        yield (
            ("env", READY_TIMEOUT),
            f"{own} may end a load before timeouts.load ({limits.load}): remove it, it is derived",
        )
    if one.smoke.concurrency > one.smoke.count:
        yield (
            ("smoke", "concurrency"),
            f"{one.smoke.concurrency} at once of {one.smoke.count} requests: raise smoke.count",
        )
