"""The parts of a deployment that have fields of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from cutover.deployment_fields import SECONDS, ListenHost, OptionText, Seconds, UrlPath
from cutover.fields import AN_ABSOLUTE_PATH, AbsolutePath, Strict, Text, setting
from cutover.limits import Memlock, Nofile

STOP_SECONDS = 120
DRAIN_SECONDS = 30
"""Most answers take less, and the old model serves on meanwhile."""
DRAIN_MARGIN = 30
"""Seconds that an engine gets to end after its own drain time, before it is killed."""


class Listen(Strict):
    """Where the server listens."""

    host: ListenHost = setting(
        "Address that it binds.", "an IP address such as 0.0.0.0 or ::, or a host name", "0.0.0.0"
    )
    port: int = setting("TCP port.", "a whole number from 1 to 65535", 8000, ge=1, le=65535)


class Parallel(Strict):
    """How the GPUs share the model; what is left of them is tensor parallelism."""

    pipeline: int = setting(
        "Stages, each with some of the layers.", "a whole number from 1 to 16", 1, ge=1, le=16
    )
    data: int = setting(
        "Copies of the model that share the requests.",
        "a whole number from 1 to 16",
        1,
        ge=1,
        le=16,
    )
    expert: bool = setting(
        "Whether whole experts lie on each GPU, in place of a slice of every one.",
        "true or false",
        False,
    )

    def data_groups(self, args: Mapping[str, Any], engine: str) -> int:
        """How many groups of GPUs the copies need; with SGLang's DP attention they share one."""
        shared = engine == "sglang" and args.get("enable-dp-attention")
        return 1 if shared else self.data


class Parsers(Strict):
    """What turns the model's own format into the fields of the API."""

    tool_call: OptionText | None = setting(
        "Parser of tool calls.", "the name of one of the engine's parsers", None
    )
    reasoning: OptionText | None = setting(
        "Parser of thoughts.", "the name of one of the engine's parsers", None
    )


class Speculative(Strict):
    """Speculative decoding: a small model guesses, the large one checks."""

    algorithm: OptionText = setting("How it guesses.", "the engine's name, such as EAGLE3")
    draft_checkpoint: AbsolutePath | None = setting(
        "Folder of the draft model.", AN_ABSOLUTE_PATH, None
    )
    steps: int = setting("Guesses in a row.", "a whole number from 1 to 64", ge=1, le=64)
    topk: int = setting("Guesses at each step.", "a whole number from 1 to 64", 1, ge=1, le=64)
    draft_tokens: int | None = setting(
        "Tokens that are checked at once; left out with topk 1: one more than steps.",
        "a whole number from 1 to 256",
        None,
        ge=1,
        le=256,
    )


class Limits(Strict):
    """What the processes may take of the host."""

    memlock: Memlock = setting(
        "Memory that they may lock, in bytes.", "infinity or a size such as 64G", "infinity"
    )
    nofile: Nofile = setting(
        "Open files of one process.", "a number from 1024 to 1073741816, such as 1M", 1048576
    )


class Timeouts(Strict):
    """How long each part of a cutover to this deployment may take."""

    load: Seconds = setting("From start to ready.", SECONDS, 900)
    stop: Seconds | None = setting(
        "From the stop signal to the kill; left out: 120, or more where the engine drains longer.",
        SECONDS,
        None,
    )
    smoke: Seconds = setting("The first answer.", SECONDS, 120)
    drain: Annotated[int, Field(ge=0, le=86400)] | None = setting(
        "Before this deployment is stopped: how long its requests in flight get to end, as its "
        "metrics tell; left out: 30, or 0 where `args.shutdown-timeout` lets the engine drain.",
        "whole seconds from 0 to 86400",
        None,
    )


class Restart(Strict):
    """What systemd does when the server ends by itself."""

    policy: Literal["no", "on-failure", "always"] = setting(
        "When it is started again.", "`no`, on-failure or always, in quotes", "on-failure"
    )
    seconds: Seconds = setting("Pause before that.", SECONDS, 10)


class Smoke(Strict):
    """The request that proves that the model answers."""

    prompt: Text = setting(
        "What is asked.", "one line of text", "What is the capital of France? Answer in one word."
    )
    expect: Text = setting(
        "What the answer must hold, compared without case; empty accepts any.", "text", ""
    )
    max_tokens: int = setting(
        "Tokens for the answer, thoughts included.",
        "a whole number from 1 to 32768",
        64,
        ge=1,
        le=32768,
    )
    count: int = setting("How many requests.", "a whole number from 1 to 1000", 1, ge=1, le=1000)
    concurrency: int = setting(
        "How many of them at once.", "a whole number from 1 to 256", 1, ge=1, le=256
    )
    min_tokens_per_second: float = setting(
        "Speed of all of them together below which there is a warning; 0 for none.",
        "a number from 0 on, such as 600.0",
        0.0,
        ge=0,
    )


class Ready(Strict):
    """When the server counts as ready, besides listing its model and using its GPUs."""

    health: UrlPath = setting(
        "Path that it answers with 200 once it can serve.", "a path such as /health", "/health"
    )
