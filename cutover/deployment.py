"""One entry of the catalogue: how one model is served."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from cutover.contradictions import contradictions
from cutover.deployment_fields import (
    MOST_GPUS,
    SECONDS,
    Gpus,
    ListenHost,
    OneLine,
    OptionName,
    OptionValue,
    Seconds,
    ServedName,
    UnitName,
)
from cutover.fields import (
    AN_ABSOLUTE_PATH,
    AbsolutePath,
    ModelError,
    Name,
    Strict,
    Text,
    UserName,
    VariableName,
    setting,
)


class Listen(Strict):
    """Where the server listens."""

    host: ListenHost = setting(
        "Address that it binds.", "an IP address such as 0.0.0.0 or ::, or a host name", "0.0.0.0"
    )
    port: int = setting("TCP port.", "a whole number from 1 to 65535", 8000, ge=1, le=65535)


class Timeouts(Strict):
    """How long each part of a cutover to this deployment may take."""

    load: Seconds = setting("From start to ready.", SECONDS, 900)
    stop: Seconds = setting("From the stop signal to the kill.", SECONDS, 120)
    smoke: Seconds = setting("The first answer.", SECONDS, 120)


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


class Deployment(Strict):
    """How one model is served; becomes one systemd unit."""

    name: Name = setting("The stem of its file.", "a name", exclude=True)
    description: OneLine = setting(
        "What it is, in one line.", "one line of text that does not end in a backslash"
    )
    unit: UnitName = setting(
        "Its systemd unit.",
        "a unit name such as vllm-model.service, not beginning with cutover",
    )
    engine: Literal["vllm", "sglang"] = setting("What serves it.", "vllm or sglang")
    python: AbsolutePath = setting("The engine's Python.", AN_ABSOLUTE_PATH)
    checkpoint: AbsolutePath = setting("Folder of the model.", AN_ABSOLUTE_PATH)
    draft_checkpoint: AbsolutePath | None = setting(
        "Folder of the draft model of speculative decoding.", AN_ABSOLUTE_PATH, None
    )
    served_names: list[ServedName] = setting(
        "Names that clients ask for; the first is the one that is checked.",
        "at least one name of letters, digits and any of ._:/@+-",
        min_length=1,
    )
    gpus: Gpus = setting(
        "The GPUs that it fills: how many, from index 0 on, or which.",
        f"a count from 1 to {MOST_GPUS}, or a list of different indices below {MOST_GPUS}",
        tuple(range(8)),
    )
    listen: Listen = setting("Where it listens.", "host and port", Listen())
    args: dict[OptionName, OptionValue] = setting(
        "Further options of the engine, in this order.",
        "names of options with their values",
        {},
    )
    env: dict[VariableName, Text] = setting(
        "Environment of the server.",
        "names of variables with their values as text, in quotes where they look like numbers "
        "or true and false",
        {},
    )
    secrets: list[VariableName] = setting(
        "Variables whose values come from the stack config.", "a list of names of variables", []
    )
    user: UserName = setting("Who runs it.", "the name of a user on the host", "root")
    working_directory: AbsolutePath | None = setting("Where it runs.", AN_ABSOLUTE_PATH, None)
    timeouts: Timeouts = setting("Its time limits.", "load, stop and smoke", Timeouts())
    restart: Restart = setting("Starting it again.", "policy and seconds", Restart())
    smoke: Smoke = setting("Asking it.", "prompt, expect and max_tokens", Smoke())

    @model_validator(mode="after")
    def _fields_agree(self) -> Deployment:
        faults = list(contradictions(self))
        if faults:
            raise ModelError(faults)
        return self
