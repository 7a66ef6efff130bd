"""`cutover plan`: every holder of a GPU, the verdict and the reason, without touching anything."""

from __future__ import annotations

from typing import Any

from .checks import gpu_reasons
from .holders import Landscape, place_of
from .obstacles import obstacles
from .order import Order, Probe
from .policy import KEEP, NEIGHBOUR
from .ports import problems, read_listeners
from .release_plan import ReleasePlan
from .scope import Scope, ScopeError, assumed, scope_of
from .store import Store
from .survey import plan_for, survey

_WIDTHS = (8, 10, 12, 8, 30, 34)
_ACTIONS = {KEEP: "kept", NEIGHBOUR: "neighbour"}


def facts(store: Store) -> dict[str, Any]:
    """What a cutover with the last order of this host would do now."""
    seen = survey()
    order = _last_order(store, seen)
    reasons = gpu_reasons(seen.reading, order.host_gpus)
    try:
        scope = assumed(order) if reasons else scope_of(order, seen.reading)
    except ScopeError as problem:
        scope, reasons = assumed(order), [str(problem)]
    plan = plan_for(store, order, scope, seen)
    if not reasons:
        listeners = read_listeners(order.probe.url, seen.processes) if order.probe.url else []
        reasons = obstacles(plan, seen, scope) + problems(listeners, plan, seen.processes)
    return {
        "deployment": order.deployment,
        "policy": order.policy,
        "gpus": [_gpu(gpu.index, gpu.uuid, gpu.used_mib, scope) for gpu in seen.reading.gpus],
        "holders": _holders(plan),
        "stops": list(plan.units),
        "refused": reasons,
        "warnings": list(plan.warnings),
    }


def table(found: dict[str, Any]) -> str:
    """The facts for people."""
    rows = [("PID", "VERDICT", "GPUS", "MIB", "WHERE", "WHAT", "WHY")]
    for holder in found["holders"]:
        gpus = ",".join(str(index) for index in holder["gpus"]) or "?"
        mib = "?" if holder["mib"] is None else str(holder["mib"])
        where = f"{holder['user']}, {holder['where']}"
        rows.append(
            (
                str(holder["pid"]),
                holder["verdict"],
                gpus,
                mib,
                where,
                holder["title"],
                holder["reason"],
            )
        )
    lines = [f"a cutover to {found['deployment']}, policy {found['policy']}, would do this:"]
    lines += ["  ".join([*map(_cell, row[:-1], _WIDTHS), row[-1]]).rstrip() for row in rows]
    if not found["holders"]:
        lines = [f"{lines[0]}", "no process holds a GPU"]
    lines += [f"stops {unit}" for unit in found["stops"]]
    lines += [f"REFUSED: {reason}" for reason in found["refused"]]
    return "\n".join(lines + [f"WARNING: {text}" for text in found["warnings"]])


def _cell(text: str, width: int) -> str:
    return text.ljust(width) if len(text) <= width else text[: width - 3] + "..."


def _holders(plan: ReleasePlan) -> list[dict[str, Any]]:
    return [
        {
            "pid": verdict.holder.process.pid,
            "start": verdict.holder.process.start,
            "title": verdict.holder.process.title,
            "user": verdict.holder.process.user,
            "where": place_of(verdict.holder.process),
            "gpus": sorted(verdict.holder.gpus),
            "mib": verdict.holder.mib,
            "verdict": _ACTIONS.get(verdict.decision.action, verdict.decision.action),
            "reason": verdict.reason,
        }
        for verdict in plan.verdicts
    ]


def _gpu(index: int, uuid: str, used_mib: int, scope: Scope) -> dict[str, Any]:
    return {"index": index, "uuid": uuid, "mib": used_mib, "wanted": index in scope.indices}


def _last_order(store: Store, seen: Landscape) -> Order:
    """The order that was staged last, else served last, else one for all GPUs."""
    serving = store.serving()
    count = len(seen.reading.gpus)
    return (
        store.staged()
        or (serving.order if serving else None)
        or Order(
            host="this-host",
            host_gpus=count,
            deployment="any",
            unit="any.service",
            unit_digest="",
            gpus=tuple(gpu.index for gpu in seen.reading.gpus),
            checkpoint="",
            probe=Probe("", ""),
        )
    )
