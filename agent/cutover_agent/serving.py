"""Starts a model and finds out whether it really serves."""

from __future__ import annotations

import re
from typing import Callable, Optional

from . import environment, listener, probe, systemd
from .clock import Deadline, wait_for
from .diagnosis import diagnose
from .gpus import Reading
from .nvidia_smi import read_gpus
from .order import Order
from .scope import ScopeError, scope_of
from .store import Serving, Store

PROGRESS_SECONDS = 5
IN_USE_MIB = 100
"""Less than a CUDA context takes, and more than an idle card reports."""
POLL_SECONDS = 0.2

_SHARDS = re.compile(r"shards.*?(\d+)/(\d+)")
# What engines put before each line of their logs: process, level, time, place.
_PREFIX = re.compile(r"^(\([\w ]+pid=\d+\) ?)?([A-Z]+ [\d-]+ [\d:.,]+ )?(\[[^]]*\] ?)*")
_EXCEPTION = re.compile(r"^([A-Za-z_]\w*\.)*[A-Z]\w*(Error|Exception|Interrupt)\b")
_CAUSE = re.compile(r"error|out of memory|critical|not found|no such|no module|killed", re.I)
_NOISE = re.compile(r"^\s|^Traceback|Traceback \(most recent")


class NotServing(RuntimeError):
    """The model does not serve; the text says what its journal gives as the cause."""


def key_of(store: Store, order: Order, env_digest: str) -> Optional[str]:
    """The API key that the deployment's environment file holds, if its probe needs one."""
    name = order.probe.api_key_env
    return environment.value(store.text(env_digest), name) if name else None


def is_right(order: Order, env_digest: str, serving: Optional[Serving]) -> bool:
    """Whether what was committed last runs exactly the files that the order asks for."""
    if serving is None or serving.stale:
        return False
    was = serving.order
    return (
        (was.deployment, was.unit, was.unit_digest, serving.env_digest)
        == (order.deployment, order.unit, order.unit_digest, env_digest)
    ) and (was.gpus, was.gpu_uuids) == (order.gpus, order.gpu_uuids)  # fmt: skip


def why_again(order: Order, env_digest: str, serving: Optional[Serving]) -> str:
    """Why a model that serves is started anew although its unit stays; empty where it is not."""
    if serving is None or serving.order.unit_digest != order.unit_digest:
        return ""
    if serving.stale:
        return f"{order.unit} runs with what was edited on the host: it starts anew without that"
    if serving.env_digest != env_digest:
        return f"the secrets of {order.deployment} have changed: it starts anew to get them"
    return ""


def is_healthy(order: Order, key: Optional[str]) -> bool:
    """Whether the order's unit runs and answers as the right model now."""
    if systemd.state(order.unit).active != "active":
        return False
    try:
        return probe.ready(order.probe, key)
    except probe.WrongServer:
        return False


def await_ready(
    order: Order,
    key: Optional[str],
    tell: Callable[[str], None],
    mask: Callable[[str], str],
    spent: float = 0.0,
) -> float:
    """Waits until the server lists its model; returns the seconds since the start, `spent` of which
    were over before the call.

    Raises NotServing at once when the unit crashes or another model answers, else at the load
    deadline.
    """
    deadline = Deadline(order.deadlines.load - spent)
    last = -float(PROGRESS_SECONDS)
    first = systemd.state(order.unit)

    def check() -> bool:
        nonlocal last
        state = systemd.state(order.unit)
        if state.down or state.sub == "auto-restart" or state.restarts > first.restarts:
            raise NotServing(f"{order.unit} crashed while loading{_because(order, first, mask)}")
        if state.active == "active" and probe.ready(order.probe, key):
            _check_place(order)
            return True
        if deadline.spent - last >= PROGRESS_SECONDS:
            last = deadline.spent
            lines = systemd.journal(order.unit, state.invocation, 50)
            tell(f"{progress(lines)}, {deadline.spent + spent:.0f} s")
        return False

    try:
        if wait_for(check, deadline, POLL_SECONDS):
            return deadline.spent + spent
    except probe.WrongServer as wrong:
        raise NotServing(str(wrong)) from None
    because = _because(order, first, mask)
    raise NotServing(f"{order.unit} was not ready within {order.deadlines.load} s{because}")


def _check_place(order: Order) -> None:
    """Raises NotServing where what answers is not this unit on its GPUs."""
    other = listener.stranger(order.probe.url, order.unit)
    if other:
        raise NotServing(f"{order.unit} is not what answers: {other}")
    reason = why_unused(read_gpus(), order)
    if reason:
        raise NotServing(f"{order.unit} answers, but not from its GPUs: {reason}")


def why_unused(reading: Reading, order: Order) -> str:
    """Which of a deployment's GPUs it does not use, or what cannot be known; empty when all are."""
    if reading.problem:
        return reading.problem
    try:
        gpus = scope_of(order, reading).gpus
    except ScopeError as gone:
        return str(gone)
    idle = [f"GPU {gpu.index} {gpu.used_mib} MiB" for gpu in gpus if gpu.used_mib < IN_USE_MIB]
    return ", ".join(idle)


def progress(lines: list[str]) -> str:
    """How far a load is, from the engine's own log: `load 37/119 shards`."""
    for line in reversed(lines):
        found = _SHARDS.findall(line)
        if found:
            return f"load {found[-1][0]}/{found[-1][1]} shards"
    return "loading"


def cause(lines: list[str]) -> list[str]:
    """The few lines of a log that say why, without the frames of a traceback.

    The first exception is the cause; those after it are what it did to other processes.
    """
    bare = [_PREFIX.sub("", line).rstrip() for line in lines]
    plain = [line for line in bare if line and not _NOISE.search(line)]
    raised = [line for line in plain if _EXCEPTION.match(line)]
    telling = [line for line in plain if _CAUSE.search(line)]
    chosen = raised[:1] or telling[-3:] or plain[-3:]
    return [line[:300] for line in chosen]


def _because(order: Order, first: systemd.UnitState, mask: Callable[[str], str]) -> str:
    """What the journal of that run says, each line indented, and what it means."""
    lines = systemd.journal(order.unit, first.invocation, 400)
    found = [f"\n  | {mask(line)}" for line in cause(lines)]
    meaning = diagnose(lines)
    return "".join(found) + (f"\n  {meaning}" if meaning else "")
