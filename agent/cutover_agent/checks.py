"""Everything that can be checked while the old model still serves."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Optional

from . import host_files, install, ports, views
from .follow import say
from .gpus import Reading
from .health import judge_health
from .holders import Landscape
from .manifest import drop_ins_by_hand
from .nvidia_smi import read_health
from .obstacles import obstacles
from .order import Order
from .release_plan import ReleasePlan
from .scope import ScopeError, scope_of, short_uuids
from .store import Store
from .survey import plan_for, survey

VERIFY_SECONDS = 60


class Refused(RuntimeError):
    """The order cannot be carried out; nothing was touched. The text is one sentence a line."""


def check(store: Store, order: Order, text: Optional[str] = None) -> ReleasePlan:
    """Refuses an order that would fail, or returns what its release will end.

    `text` is the unit's where that is not the one that was put last. Raises Refused with every
    reason that was found, and OrderError where a put is missing.
    """
    if text is None:
        text = _candidate(store, order)
        store.put_digest("env", order.deployment)
    seen = survey()
    plan, gpu_faults = gpu_checks(store, order, seen)
    refused = install.refusal(store, order.unit)
    reasons = [
        *gpu_faults,
        *([refused] if refused else []),
        *verify(order.unit, text),
        *host_files.reasons(order, text, drop_ins_by_hand(store, order.unit)),
    ]
    if reasons:
        raise Refused("\n".join(str(reason) for reason in reasons))
    for line in views.make(order.checkpoint, order.files):
        say(line)
    return plan


def _candidate(store: Store, order: Order) -> str:
    digest = store.put_digest("unit", order.deployment)
    if digest != order.unit_digest:
        raise Refused(
            f"{order.deployment}: the unit text on this host is {digest[:12]}, the order says "
            f"{order.unit_digest[:12]}: run `pulumi up` without --target"
        )
    return store.text(digest)


def gpu_checks(
    store: Store,
    order: Order,
    seen: Landscape,
    health_of: Callable[[], list[dict[str, str]]] = read_health,
) -> tuple[ReleasePlan, list[str]]:
    """What the release will end, and why the GPUs or the port would not be free after it."""
    reasons = gpu_reasons(seen.reading, order.host_gpus)
    if reasons:
        return ReleasePlan(), reasons
    try:
        scope = scope_of(order, seen.reading)
    except ScopeError as problem:
        return ReleasePlan(), [str(problem)]
    plan = plan_for(store, order, scope, seen)
    health = judge_health(health_of(), scope.uuids, order.bad_remap)
    listeners = ports.read_listeners(order.probe.url, seen.processes)
    reasons = [
        *short_uuids(order, seen.reading),
        *health.refusals,
        *obstacles(plan, seen, scope),
        *ports.problems(listeners, plan, seen.processes),
    ]
    warnings = (*plan.warnings, *health.warnings)
    return dataclasses.replace(plan, warnings=warnings), reasons


def gpu_reasons(reading: Reading, host_gpus: int) -> list[str]:
    """Why the GPUs cannot be trusted with a cutover."""
    if reading.problem:
        return [f"the GPUs cannot be read: {reading.problem}"]
    if len(reading.gpus) != host_gpus:
        return [f"{len(reading.gpus)} GPUs answer, but the host is declared with {host_gpus}"]
    return []


def verify(unit: str, text: str) -> list[str]:
    """What `systemd-analyze verify` says about a unit; every line is a reason to refuse it."""
    folder = Path(tempfile.mkdtemp(prefix="cutover-verify-"))
    try:
        (folder / unit).write_text(text, encoding="utf-8")
        done = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", str(folder / unit)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=VERIFY_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return [f"{unit}: systemd-analyze verify cannot be run: {error}"]
    finally:
        shutil.rmtree(folder)
    lines = [line.replace(f"{folder}/", "") for line in done.stderr.splitlines() if line.strip()]
    mine = [line for line in lines if unit in line]
    if done.returncode and not mine:
        mine = lines or [f"systemd-analyze verify exits {done.returncode}"]
    return [f"{unit}: {line.removeprefix(f'{unit}: ')}" for line in mine]
