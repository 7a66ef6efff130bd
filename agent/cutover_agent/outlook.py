"""What a release would meet now, and what `stage` would refuse: read only."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Optional

from . import checks, host_files, install, previous
from .adopt import compare
from .bound import bound
from .files import file_digest
from .holders import Holder, Landscape, place_of
from .manifest import drop_ins_by_hand, late_drop_ins
from .mask import hide
from .nvidia_smi import read_gpus, read_rows
from .order import Order
from .services import read_services
from .store import Store
from .survey import look

Rows = list[dict[str, str]]

MOST = 16
"""Holders and refusals that are told; a box has 8 GPUs and a few processes on each."""


@dataclass(frozen=True)
class Wanted:
    """What the program is about to order."""

    order: Order
    unit_text: str
    env_text: str
    """Its environment file; empty where the host's key is not pinned: no secret goes there yet."""
    env_digest: str
    others: tuple[str, ...]
    """Names of the other deployments' units."""


def outlook(
    store: Store, wanted: Optional[Wanted], seconds: float, health_of: Callable[[], Rows]
) -> dict[str, Any]:
    """GPUs, who holds them, and what stands in the way of an order.

    `seconds` is how long nvidia-smi may take. Unlike a cutover, a preview asks everything at once.
    """
    with ThreadPoolExecutor() as pool:
        verified = pool.submit(_verify, wanted)
        gpus, rows = pool.submit(read_gpus, seconds), pool.submit(read_rows, seconds)
        services = pool.submit(read_services)
        seen = look(gpus.result(), rows.result(), services.result())
        ahead = _ahead(store, wanted, seen, verified.result(), health_of) if wanted else {}
    ours = store.units() if store.root.is_dir() else frozenset()
    return {
        "gpus": {
            "problem": seen.reading.problem,
            "used_mib": [gpu.used_mib for gpu in seen.reading.gpus],
        },
        "holders": [_holder(holder, ours) for holder in seen.holders[:MOST]],
        **ahead,
    }


def _verify(wanted: Optional[Wanted]) -> list[str]:
    """What systemd says about a unit that is not installed yet."""
    if wanted is None or file_digest(install.UNITS / wanted.order.unit) == wanted.order.unit_digest:
        return []
    return checks.verify(wanted.order.unit, wanted.unit_text)


def _holder(holder: Holder, ours: frozenset[str]) -> dict[str, Any]:
    return {
        "pid": holder.process.pid,
        "title": hide(holder.process.title)[:80],
        "user": holder.process.user,
        "place": place_of(holder.process),
        "gpus": sorted(holder.gpus),
        "mib": holder.mib,
        "ours": holder.process.unit in ours,
    }


def _ahead(
    store: Store,
    wanted: Wanted,
    seen: Landscape,
    verified: list[str],
    health_of: Callable[[], Rows],
) -> dict[str, Any]:
    order, text = wanted.order, wanted.unit_text
    plan, faults = checks.gpu_checks(store, order, seen, health_of)
    by_hand = compare(store, order, text, wanted.env_text)
    taken_over = by_hand is not None and not by_hand.differences
    written = [*wanted.others, *([] if taken_over else [order.unit])]
    way = None if taken_over else previous.find(store, order, plan)
    leaving = drop_ins_by_hand(store, order.unit) + late_drop_ins(store, order.unit)
    refusals = [
        *([] if taken_over else faults),
        *install.refusals(store, written),
        *([way.sentence] if way and way.refused else []),
        *verified,
        *host_files.reasons(order, text, leaving),
    ]
    return {
        "ends": [hide(line) for line in plan.acts()[:MOST]],
        "warnings": [hide(line) for line in plan.warnings[:MOST]],
        "refusals": [hide(line) for line in refusals[:MOST]],
        "way_back": hide(way.sentence) if way and not way.refused else "",
        "bound": bound(order, way.serving.order if way and way.serving else None).seconds,
        "by_hand": by_hand and dataclasses.asdict(by_hand),
    }
