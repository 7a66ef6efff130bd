"""One entry of the catalogue: how one model is served."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, model_validator

from cutover.additions import Additions
from cutover.contradictions import contradictions
from cutover.deployment_fields import (
    MOST_GPUS,
    Gpus,
    OneLine,
    OptionName,
    OptionText,
    OptionValue,
    ServedName,
    UnitName,
    switch,
)
from cutover.deployment_parts import (
    DRAIN_MARGIN,
    DRAIN_SECONDS,
    STOP_SECONDS,
    Limits,
    Listen,
    Parallel,
    Parsers,
    Ready,
    Restart,
    Smoke,
    Speculative,
    Timeouts,
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
from cutover.host_files import Edit, JsonName, Requirement, view_path
from cutover.runbook import Notes

__all__ = ["Deployment", "Listen"]


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
    engine: Literal["vllm", "sglang", "command"] = setting(
        "What serves it; `command` is any other server with an OpenAI-like API.",
        "vllm, sglang or command",
    )
    engine_version: OptionText | None = setting(
        "The engine's release, where it is known: then an option that it does not know is an "
        "error and no mere warning.",
        "a release such as 0.33.0, in quotes where it looks like a number",
        None,
    )
    python: AbsolutePath | None = setting(
        "The Python in which vllm or sglang is installed.", AN_ABSOLUTE_PATH, None
    )
    command: list[Text] = setting(
        "For engine `command`: the program with all its arguments, where it listens included.",
        "a list of words, the first an absolute path",
        [],
    )
    checkpoint: AbsolutePath = setting("Folder of the model, or its GGUF file.", AN_ABSOLUTE_PATH)
    checkpoint_edits: dict[JsonName, Edit] = setting(
        "JSON files of the checkpoint that are served changed. The checkpoint itself is never "
        "touched: the host makes a view of it, a folder of links with edited copies.",
        "names of JSON files with what to remove",
        {},
    )
    mount: AbsolutePath | None = setting(
        "A mount point that has to be there, beside those that the host's fstab knows.",
        AN_ABSOLUTE_PATH,
        None,
    )
    tokenizer: AbsolutePath | None = setting(
        "Folder of the tokenizer, where the checkpoint has none.", AN_ABSOLUTE_PATH, None
    )
    hf_config: AbsolutePath | None = setting(
        "Folder of config.json, where the checkpoint has none (vllm).", AN_ABSOLUTE_PATH, None
    )
    served_names: list[ServedName] = setting(
        "Names that clients ask for; the first is the one that is checked.",
        "at least one name of letters, digits and any of ._:/@+-",
        min_length=1,
    )
    gpus: Gpus = setting(
        "The GPUs that it fills: how many, from index 0 on, or which, all by index or all by UUID "
        "as `nvidia-smi -L` shows it.",
        f"a count from 1 to {MOST_GPUS}, or a list of different indices below {MOST_GPUS} or of "
        "different UUIDs (GPU-...)",
        tuple(range(8)),
    )
    parallel: Parallel = setting(
        "How the GPUs share the model.", "pipeline, data and expert", Parallel()
    )
    context: int | None = setting(
        "Longest context, in tokens; left out: the model's own.",
        "a whole number of tokens from 1 on",
        None,
        ge=1,
    )
    kv_cache_dtype: OptionText | None = setting(
        "Number format of the KV cache.", "the engine's name of one, such as fp8", None
    )
    memory_fraction: float | None = setting(
        "Share of each GPU's memory that the engine may take.",
        "a number above 0 and below 1, such as 0.92",
        None,
        gt=0,
        lt=1,
    )
    parsers: Parsers = setting("Parsers of its output.", "tool_call and reasoning", Parsers())
    speculative: Speculative | None = setting(
        "Speculative decoding.", "algorithm, draft_checkpoint, steps, topk", None
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
    strict_env: bool = setting(
        "Whether a process that runs without a variable of env, or with another value, fails the "
        "cutover; else it is a warning.",
        "true or false",
        False,
    )
    secrets: list[VariableName] = setting(
        "Variables whose values come from the stack config.", "a list of names of variables", []
    )
    requires: list[Requirement] = setting(
        "Files of the host that must be as patched.", "a list of files, each path and sha256", []
    )
    user: UserName = setting("Who runs it.", "the name of a user on the host", "root")
    working_directory: AbsolutePath | None = setting("Where it runs.", AN_ABSOLUTE_PATH, None)
    limits: Limits = setting("Resource limits.", "memlock and nofile", Limits())
    warm: Annotated[Literal["off", "on", "auto"], BeforeValidator(switch)] = setting(
        "Whether a host reads the checkpoint into memory before it stops the old model; `auto`: "
        "where the engine loads from there, as far as is known.",
        "off, on or auto",
        "auto",
    )
    timeouts: Timeouts = setting("Its time limits.", "load, stop, smoke and drain", Timeouts())
    restart: Restart = setting("Starting it again.", "policy and seconds", Restart())
    ready: Ready = setting("When it counts as ready.", "health", Ready())
    smoke: Smoke = setting("Asking it.", "prompt, expect and max_tokens", Smoke())
    additions: Additions = setting(
        "Directives that go into the unit as they are; `%` and `$` keep systemd's meaning there.",
        "sections (Unit, Service) with directives and their values",
        {},
    )
    runbook: Notes = setting("For the people on call.", "why, measured and notes", Notes())

    @property
    def model_path(self) -> str:
        """What the engine loads: the checkpoint, or the host's edited view of it."""
        if not self.checkpoint_edits:
            return self.checkpoint
        return view_path(self.name, self.checkpoint, self.checkpoint_edits)

    @property
    def draft_checkpoint(self) -> str | None:
        """Folder of the draft model of speculative decoding."""
        return self.speculative.draft_checkpoint if self.speculative else None

    @property
    def gpu_uuids(self) -> tuple[str, ...]:
        """The GPUs where they are named by UUID; else empty."""
        return tuple(name for name in self.gpus if isinstance(name, str))

    @property
    def gpu_indices(self) -> tuple[int, ...]:
        """The GPUs where they are named by index; else as many, from 0 on."""
        named = tuple(name for name in self.gpus if isinstance(name, int))
        return named or tuple(range(len(self.gpus)))

    @property
    def tensor_parallel(self) -> int:
        """How many GPUs hold a slice of each layer."""
        groups = self.parallel.data_groups(self.args, self.engine)
        return len(self.gpus) // (self.parallel.pipeline * groups)

    @property
    def drain_seconds(self) -> int:
        """How long the engine itself lets running requests finish before it ends."""
        value = self.args.get("shutdown-timeout")
        return value if type(value) is int else 0

    @property
    def wait_seconds(self) -> int:
        """How long requests in flight are waited for before the stop signal."""
        if self.timeouts.drain is not None:
            return self.timeouts.drain
        return 0 if self.drain_seconds else DRAIN_SECONDS

    @property
    def stop_seconds(self) -> int:
        """From the stop signal to the kill: as given, else above the engine's own drain time."""
        return self.timeouts.stop or max(STOP_SECONDS, self.drain_seconds + DRAIN_MARGIN)

    @model_validator(mode="after")
    def _fields_agree(self) -> Deployment:
        faults = list(contradictions(self))
        if faults:
            raise ModelError(faults)
        return self
