"""Everything that can be checked while the old model still serves."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Optional

from . import host_files, install, port, systemd, views
from .follow import say
from .gate import why_not_free
from .gpus import Reading, read_gpus, read_rows
from .holders import Landscape, look
from .order import Order
from .release_plan import ReleasePlan, plan_release
from .store import Store

VERIFY_SECONDS = 60


class Refused(RuntimeError):
    """The order cannot be carried out; nothing was touched. The text is one sentence a line."""


def survey() -> Landscape:
    """The host as a release sees it."""
    return look(read_gpus(), read_rows(), systemd.main_pids())


def running_units(store: Store) -> frozenset[str]:
    """The units of this program that are neither inactive nor failed."""
    return frozenset(unit for unit in store.units() if not systemd.state(unit).down)


def check(store: Store, order: Order, text: Optional[str] = None) -> ReleasePlan:
    """Refuses an order that would fail, or returns what its release will end.

    `text` is the unit's where that is not the one that was put last. Raises Refused with every
    reason that was found, and OrderError where a put is missing.
    """
    if text is None:
        text = _candidate(store, order)
        store.put_digest("env", order.deployment)
    seen = survey()
    plan = plan_release(seen, store.units(), running_units(store), order.policy)
    reasons = [
        *gpu_reasons(seen.reading, order.host_gpus),
        *([install.refusal(store, order.unit)] if install.refusal(store, order.unit) else []),
        *verify(order.unit, text),
        *host_files.reasons(order, text),
        *port_reasons(order, seen, plan, store),
        *foreign_reasons(plan, seen.reading, order.host_gpus),
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


def gpu_reasons(reading: Reading, host_gpus: int) -> list[str]:
    """Why the GPUs cannot be trusted with a cutover."""
    if reading.problem:
        return [f"the GPUs cannot be read: {reading.problem}"]
    if len(reading.gpus) != host_gpus:
        return [f"{len(reading.gpus)} GPUs answer, but the host is declared with {host_gpus}"]
    return []


def port_reasons(order: Order, seen: Landscape, plan: ReleasePlan, store: Store) -> list[str]:
    """Why the server's port would not be free after the release."""
    number = port.port_of(order.probe.url)
    listeners, unseen = port.look(number, seen.processes)
    return port.reasons(number, listeners, unseen, plan, store.units())


def foreign_reasons(plan: ReleasePlan, reading: Reading, host_gpus: int) -> list[str]:
    """Why the GPUs would not be free after the release."""
    reasons = [
        f"{foreign.holder.describe()} holds a GPU and is not ended: {foreign.reason}"
        for foreign in plan.foreign
    ]
    if gpu_reasons(reading, host_gpus):
        return reasons
    busy = why_not_free(reading, host_gpus)
    if busy and not (plan.stop or plan.end or plan.foreign):
        reasons.append(f"memory is in use by a process that cannot be seen here: {busy}")
    return reasons


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
    finally:
        shutil.rmtree(folder)
    lines = [line.replace(f"{folder}/", "") for line in done.stderr.splitlines() if line.strip()]
    if done.returncode and not lines:
        lines = [f"systemd-analyze verify exits {done.returncode}"]
    return [f"{unit}: {line.removeprefix(f'{unit}: ')}" for line in lines if unit in line]
