"""Everything a preview wants to know about the host, read in one go; nothing is changed by it."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Optional

from . import deploy, lock, repairs, runbook
from .attempt import latest
from .drift import CRASHES, Committed, Found, drifted
from .history import last_loads, last_phases
from .manifest import (
    AS_WRITTEN,
    MISSING,
    Loaded,
    changed_before_start,
    drop_ins,
    late_drop_ins,
    loaded,
    path_of,
    state_of,
)
from .nvidia_smi import read_health
from .order import Order
from .outlook import Wanted, outlook
from .repair import shown
from .serving import is_healthy, key_of
from .store import Serving, Store

VERSION = 1
GPU_SECONDS = 5.0
"""Facts are no gate: an nvidia-smi that takes longer is said to be slow, and not waited for."""


def facts(store: Store, wanted: Optional[Wanted]) -> dict[str, Any]:
    """The host as it is; `wanted` is what the program is about to order, if anything."""
    with ThreadPoolExecutor() as pool:
        health = pool.submit(read_health, GPU_SECONDS)
        ahead = pool.submit(outlook, store, wanted, GPU_SECONDS, health.result)
        known = store.root.is_dir()
        about_us = _ours(store, wanted.order if wanted else None) if known else {}
        return {
            "version": VERSION,
            "known": known,
            "memory_mib": memory_mib(),
            "disk_mib": {folder: _free_mib(folder) for folder in ("/", "/models")},
            **about_us,
            "persistence": persistence_mode(health.result()),
            **ahead.result(),
        }


def _ours(store: Store, wanted: Optional[Order]) -> dict[str, Any]:
    serving = store.serving()
    found = _found(store)
    states = {one.unit: one.loaded for one in found}
    if serving and serving.order.unit not in states:
        states.update(loaded([serving.order.unit]))
    busy = lock.is_held("cutover")
    committed = _committed(store, serving, states) if serving else None
    staged = store.staged()
    ordered = bool(wanted and staged and staged.digest == wanted.digest)
    expects = wanted.deployment if wanted and ordered else ""
    drift = {} if busy else drifted(found, committed, expects)
    if _agent_is_not_ours(store):
        drift[repairs.AGENT] = ["the agent on the host is not the one that was installed"]
    return {
        "serves": _serves(serving, committed, states) if serving and committed else None,
        "busy": _busy(store) if busy else "",
        "put": sorted(_puts(store)),
        "repairs": repairs.counts(store),
        "drift": drift,
        "last": _last(store),
        "loads": last_loads(store),
        "phases": last_phases(store),
    }


def _puts(store: Store) -> list[str]:
    """What the host remembers to have been put, by root."""
    found = [repairs.root_of(r.kind, r.deployment) for r in store.records().values()]
    return found + [repairs.RUNBOOK] * runbook.is_kept(store)


def _found(store: Store) -> list[Found]:
    records = [record for record in store.records().values() if record.kind in ("unit", "env")]
    files = {(r.deployment, r.kind): state_of(store, path_of(r)) for r in records}
    units = {record.deployment: record.unit for record in records}
    states = loaded(list(units.values()))
    return [
        Found(
            deployment,
            unit,
            files.get((deployment, "unit"), ""),
            files.get((deployment, "env"), ""),
            tuple(shown(path) for path in late_drop_ins(store, unit)),
            states[unit],
        )
        for deployment, unit in units.items()
    ]


def _committed(store: Store, serving: Serving, states: dict[str, Loaded]) -> Committed:
    order, unit = serving.order, states[serving.order.unit]
    healthy = not unit.down and is_healthy(order, key_of(store, order, serving.env_digest))
    age = time.monotonic() - unit.started / 1e6
    loading = unit.restarts <= CRASHES and unit.sub == "running" and age < order.deadlines.load
    return Committed(
        order.deployment,
        order.unit,
        healthy,
        loading,
        serving.stale or changed_before_start(unit, _changed(store, order)),
    )


def _changed(store: Store, order: Order) -> list[Path]:
    """Files of the serving deployment that are not as the agent wrote them."""
    records = [r for r in store.records().values() if r.deployment == order.deployment]
    paths = [path_of(record) for record in records if record.kind in ("unit", "env")]
    return [p for p in paths if state_of(store, p) not in (AS_WRITTEN, MISSING)] + drop_ins(
        order.unit
    )


def _serves(serving: Serving, committed: Committed, states: dict[str, Loaded]) -> dict[str, Any]:
    unit = states[serving.order.unit]
    age = time.monotonic() - unit.started / 1e6 if unit.main_pid else None
    return {
        "deployment": serving.order.deployment,
        "unit": serving.order.unit,
        "unit_digest": serving.order.unit_digest,
        "model": serving.order.probe.model,
        "state": f"{unit.active} ({unit.sub})",
        "healthy": committed.healthy,
        "loading": committed.loading and not committed.healthy,
        "enabled": unit.enabled == "enabled",
        "seconds": None if age is None else round(age),
    }


def _busy(store: Store) -> str:
    journal = latest(store)
    attempt = journal.load() if journal else None
    return attempt.deployment if attempt else "another model"


def _last(store: Store) -> Optional[dict[str, Any]]:
    journal = latest(store)
    attempt = journal.load() if journal else None
    if attempt is None:
        return None
    names = ("phases", "load_seconds", "down_seconds", "tokens_per_second")
    return {
        "deployment": attempt.deployment,
        "outcome": attempt.outcome,
        **{name: attempt.evidence[name] for name in names if name in attempt.evidence},
    }


def _agent_is_not_ours(store: Store) -> bool:
    name = repairs.own_agent(store)
    if not name:
        return False
    path = Path(os.path.realpath(deploy.LINK))
    return path.stem != name or not deploy.is_whole(path)


def persistence_mode(gpus: Sequence[Mapping[str, str]]) -> str:
    """Whether the driver stays loaded on every card: `on`, `off`, or `unknown`."""
    modes = {gpu.get("persistence_mode", "") for gpu in gpus}
    if not modes or not modes <= {"Enabled", "Disabled"}:
        return "unknown"
    return "on" if modes == {"Enabled"} else "off"


def memory_mib() -> dict[str, int]:
    """Memory of the host and what of it is free for use, in MiB."""
    with open("/proc/meminfo") as file:
        values = dict(line.split(":", 1) for line in file)
    return {
        "total": int(values["MemTotal"].split()[0]) >> 10,
        "available": int(values["MemAvailable"].split()[0]) >> 10,
    }


def _free_mib(folder: str) -> Optional[int]:
    try:
        return shutil.disk_usage(folder).free >> 20
    except OSError:
        return None
