"""The wire format between the Pulumi program and a host: what one host shall serve.

The program imports this module to write orders; the agent uses it to read them. It depends on
the standard library alone, and never on the program.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import typing
from dataclasses import dataclass, field
from typing import Any, TypeVar

WIRE_VERSION = 1
POLICIES = ("managed", "engines")
NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
UNIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9:_.@\\-]*\.service")
"""Ours and those of others, which may be instances (`vllm@a.service`)."""

T = TypeVar("T")


class OrderError(ValueError):
    """An order or a message about one that cannot be understood; the text is one sentence."""


@dataclass(frozen=True)
class Deadlines:
    """How long each phase of a cutover may take, in seconds."""

    stop: int = 120
    release: int = 60
    """For servers that were born while the release ended others; these have their stop time."""
    gate: int = 30
    load: int = 900
    smoke: int = 120
    settle: int = 60
    """For memory that does not go away in a roll-back, which starts its model all the same."""
    kill: int = 15
    """After SIGKILL, until a process counts as one that cannot be killed."""
    drain: int = 0
    """For requests in flight when this deployment is stopped, before that."""


@dataclass(frozen=True)
class Probe:
    """How to find out on the host that the right model answers."""

    url: str
    """Scheme, address and port as seen from the host itself, such as ``http://127.0.0.1:8000``."""
    model: str
    """The id that the server must list, and that the smoke request asks for."""
    prompt: str = "What is the capital of France? Answer in one word."
    expect: str = ""
    """Text that the answer must hold, compared without case; empty accepts any answer."""
    max_tokens: int = 64
    api_key_env: str = ""
    """Name of the variable in the deployment's environment file that holds the API key."""
    requests: int = 1
    """How many requests in a row have to be answered, each within the smoke deadline."""
    concurrency: int = 1
    """How many of them are under way at once."""
    min_tokens_per_second: float = 0.0
    """Speed of all of them together below which there is a warning."""
    health: str = "/health"
    """Path that is answered with 200 once the server can serve."""


@dataclass(frozen=True)
class Hooks:
    """Commands of the host's owner, each a program and its arguments; empty: none."""

    before_stop: tuple[str, ...] = ()
    after_commit: tuple[str, ...] = ()
    after_rollback: tuple[str, ...] = ()
    seconds: int = 60
    """How long each of them may take."""


@dataclass(frozen=True)
class Edit:
    """What one JSON file of a checkpoint loses in the view that is served."""

    file: str
    remove: tuple[str, ...]
    """Keys; a dot leads inside, a name without one is removed wherever it stands."""


@dataclass(frozen=True)
class Requirement:
    """A file of the host that has to be as patched."""

    path: str
    sha256: str
    sets: tuple[str, ...] = ()
    """Environment variables that it sets inside the processes."""


@dataclass(frozen=True)
class Files:
    """What has to be on the host besides the checkpoint; empty where there is no such thing."""

    draft: str = ""
    tokenizer: str = ""
    hf_config: str = ""
    mount: str = ""
    user: str = "root"
    """Who has to be able to read them."""
    any_format: bool = False
    """Whether the checkpoint only has to be there: not every server loads safetensors or GGUF."""
    view: str = ""
    """Where the edited view of the checkpoint is made."""
    edits: tuple[Edit, ...] = ()
    requires: tuple[Requirement, ...] = ()


@dataclass(frozen=True)
class Warm:
    """Whether the checkpoint is read into memory while the old model serves."""

    read: bool = False
    why_not: str = ""
    """For people, where it might be expected; empty where it is switched off."""
    mib_per_second: int = 4096


@dataclass(frozen=True)
class Order:
    """What one host shall serve, and how carefully to get there."""

    host: str
    host_gpus: int
    """How many GPUs the host has; the gate fails on any other count."""
    deployment: str
    unit: str
    unit_digest: str
    """SHA-256 of the unit file's text, hexadecimal."""
    gpus: tuple[int, ...]
    """Indices of the GPUs that the deployment fills, in PCI bus order."""
    checkpoint: str
    probe: Probe
    policy: str = "engines"
    gpu_uuids: tuple[str, ...] = ()
    """The same GPUs by UUID, where the deployment names them so; then `gpus` only counts them."""
    idle_mib: int = 0
    """MiB that a GPU of this host may show with nothing on it."""
    bad_remap: str = "refuse"
    """Whether a GPU with a failed row remap is refused (``refuse``) or only told (``warn``)."""
    also_end: tuple[str, ...] = ()
    """Containers, by name or id, whose processes a release ends too."""
    companions: dict[str, str] = field(default_factory=dict)
    """Other units that a release stops: ``restart`` starts them again behind the gate, ``end``
    leaves them stopped."""
    deadlines: Deadlines = field(default_factory=Deadlines)
    hooks: Hooks = field(default_factory=Hooks)
    accept_no_rollback: bool = False
    """Whether a server may be ended that there is no way back to."""
    files: Files = field(default_factory=Files)
    environment: dict[str, str] = field(default_factory=dict)
    """What every process that holds a GPU has to have in its environment; never a secret."""
    strict_env: bool = False
    """Whether a deviation from that fails the cutover."""
    warm: Warm = field(default_factory=Warm)
    version: int = WIRE_VERSION

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.deployment):
            raise OrderError(f"order: deployment {self.deployment!r} is not a legal name")
        if not UNIT.fullmatch(self.unit):
            raise OrderError(f"order: unit {self.unit!r} is not a legal service name")
        if self.probe.requests < 1:
            raise OrderError("order.probe.requests: at least one request has to be answered")
        if self.policy not in POLICIES:
            raise OrderError(f"order: policy {self.policy!r} is none of {', '.join(POLICIES)}")

    @property
    def digest(self) -> str:
        """Names this order: equal orders, and only those, have equal digests."""
        return text_digest(self.to_json())

    def to_json(self) -> str:
        """One field a line, so that a preview shows which field of an order changes."""
        return json.dumps(dataclasses.asdict(self), indent=2, sort_keys=True)

    @staticmethod
    def from_json(text: str) -> Order:
        """Reads an order; raises OrderError naming the field that is missing, unknown or wrong."""
        order = _decode(Order, text, "order")
        if order.version != WIRE_VERSION:
            raise OrderError(
                f"order: version {order.version} is not {WIRE_VERSION}: program and agent differ, "
                "run `pulumi up` so that the agent is replaced"
            )
        return order


@dataclass(frozen=True)
class Declared:
    """What the `service` step of one deployment wants on its host."""

    deployment: str
    unit: str
    unit_digest: str
    enabled: bool
    """Whether this deployment is the one that the host serves."""
    serves: str
    """Name of the deployment that the host serves."""

    def to_json(self) -> str:
        """One field a line, as for an order."""
        return json.dumps(dataclasses.asdict(self), indent=2, sort_keys=True)

    @staticmethod
    def from_json(text: str) -> Declared:
        """Reads a declaration; raises OrderError as `Order.from_json` does."""
        return _decode(Declared, text, "service")


def text_digest(text: str) -> str:
    """SHA-256 of a text in UTF-8, hexadecimal."""
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


def _decode(kind: type[T], text: str, where: str) -> T:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise OrderError(f"{where}: not JSON ({error})") from None
    return _build(kind, value, where, strict=True)


def read(kind: type[T], value: Any, where: str) -> T:
    """Builds a dataclass from what the host itself remembers; `where` names it in OrderError.

    Another version of the agent may have written it: fields that this one does not know are left
    out, and those that it lacks have their defaults. So every field that is added has a default,
    and none ever changes its meaning.
    """
    return _build(kind, value, where, strict=False)


def _build(kind: type[T], value: Any, where: str, strict: bool) -> T:
    if not isinstance(value, dict):
        raise OrderError(f"{where}: expected an object, got {type(value).__name__}")
    hints = typing.get_type_hints(kind)
    known = {f.name: f for f in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for name in value:
        if strict and name not in known:
            raise OrderError(f"{where}.{name}: unknown field")
    built = {}
    for name, spec in known.items():
        if name in value:
            built[name] = _field(hints[name], value[name], f"{where}.{name}", strict)
        elif spec.default is dataclasses.MISSING and spec.default_factory is dataclasses.MISSING:
            raise OrderError(f"{where}.{name}: missing")
    return kind(**built)


def _field(hint: Any, value: Any, where: str, strict: bool) -> Any:
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _build(hint, value, where, strict)
    origin = typing.get_origin(hint)
    if origin in (tuple, list):
        if not isinstance(value, (list, tuple)):
            raise OrderError(f"{where}: expected a list, got {type(value).__name__}")
        inner = typing.get_args(hint)[0]
        return origin(_field(inner, item, f"{where}[{i}]", strict) for i, item in enumerate(value))
    if origin is dict:
        if not isinstance(value, dict):
            raise OrderError(f"{where}: expected an object, got {type(value).__name__}")
        return value
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        raise OrderError(f"{where}: expected {hint.__name__}, got {type(value).__name__}")
    return value
