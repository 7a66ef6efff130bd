"""Everything a preview wants to know about the host, read in one go; nothing is changed by it."""

from __future__ import annotations

import dataclasses
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
    EDITED,
    Loaded,
    changed_before_start,
    drop_ins,
    late_drop_ins,
    loaded,
    paths_of,
    state_of,
)
from .nvidia_smi import read_health
from .order import Order
from .outlook import Wanted, outlook
from .repair import changes, shown
from .serving import is_healthy, key_of, why_again
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
        about_us = _ours(store, wanted) if known else {}
        return {
            "version": VERSION,
            "known": known,
            "memory_mib": memory_mib(),
            "disk_mib": {folder: _free_mib(folder) for folder in ("/", "/models")},
            **about_us,
            "persistence": persistence_mode(health.result()),
            **ahead.result(),
        }


def _ours(store: Store, wanted: Optional[Wanted]) -> dict[str, Any]:
    serving = store.serving()
    found = _found(store)
    states = {one.unit: one.loaded for one in found}
    if serving and serving.order.unit not in states:
        states.update(loaded([serving.order.unit]))
    busy = lock.is_held("cutover")
    committed = _committed(store, serving, states) if serving else None
    staged = store.staged()
    order = wanted.order if wanted else None
    ordered = bool(order and staged and staged.digest == order.digest)
    expects = order.deployment if order and ordered else ""
    drift = {} if busy else drifted(found, committed, expects)
    foreign = deploy.difference(repairs.own_agent(store))
    if foreign:
        drift[repairs.AGENT] = [foreign]
    return {
        "serves": _serves(serving, committed, states) if serving and committed else None,
        "busy": _busy(store) if busy else "",
        "again": _again(wanted, serving, committed) if wanted and serving and committed else "",
        "put": sorted(_puts(store)),
        "repairs": repairs.counts(store),
        "drift": drift,
        "last": _last(store),
        "loads": last_loads(store),
        "phases": last_phases(store),
    }


def _again(wanted: Wanted, serving: Serving, committed: Committed) -> str:
    as_found = dataclasses.replace(serving, stale=committed.stale)
    return why_again(wanted.order, wanted.env_digest, as_found)


def _puts(store: Store) -> list[str]:
    """What the host remembers to have been put, by root."""
    found = [repairs.root_of(r.kind, r.deployment) for r in store.records().values()]
    return found + [repairs.RUNBOOK] * runbook.is_kept(store)


def _found(store: Store) -> list[Found]:
    records = [record for record in store.records().values() if record.kind in ("unit", "env")]
    units = {record.deployment: record.unit for record in records}
    states = loaded(list(units.values()))

    def files(kind: str, deployment: str) -> dict[str, str]:
        mine = [r for r in records if (r.kind, r.deployment) == (kind, deployment)]
        return {str(path): state_of(store, path) for r in mine for path in paths_of(r)}

    return [
        Found(
            deployment,
            unit,
            "".join(files("unit", deployment).values()),
            files("env", deployment),
            tuple(shown(path) for path in late_drop_ins(store, unit)),
            states[unit],
            changes(store, unit),
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
    puts = [record for record in records if record.kind in ("unit", "env")]
    paths = [path for record in puts for path in paths_of(record)]
    return [path for path in paths if state_of(store, path) == EDITED] + drop_ins(order.unit)


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
