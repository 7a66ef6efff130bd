"""What a release would meet now, and what `stage` would refuse: read only."""

from __future__ import annotations

import dataclasses
from typing import Any, Optional

from . import checks, host_files, install, previous
from .adopt import compare
from .holders import Holder, Landscape, place_of
from .manifest import drop_ins_by_hand, late_drop_ins
from .mask import hide
from .nvidia_smi import read_gpus, read_rows
from .order import Order
from .services import read_services
from .store import Store
from .survey import look

MOST = 16
"""Holders and refusals that are told; a box has 8 GPUs and a few processes on each."""


def outlook(
    store: Store, wanted: Optional[Order], unit_text: str, seconds: float
) -> dict[str, Any]:
    """GPUs, who holds them, and what stands in the way of an order and its unit's text."""
    seen = look(read_gpus(seconds), read_rows(seconds), read_services())
    ours = store.units() if store.root.is_dir() else frozenset()
    return {
        "gpus": {
            "problem": seen.reading.problem,
            "used_mib": [gpu.used_mib for gpu in seen.reading.gpus],
        },
        "holders": [_holder(holder, ours) for holder in seen.holders[:MOST]],
        **(_ahead(store, wanted, unit_text, seen) if wanted else {}),
    }


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


def _ahead(store: Store, wanted: Order, unit_text: str, seen: Landscape) -> dict[str, Any]:
    plan, faults = checks.gpu_checks(store, wanted, seen)
    by_hand = compare(store, wanted.unit, unit_text, "") if unit_text else None
    taken_over = by_hand is not None and not by_hand.differences
    refused = None if taken_over else install.refusal(store, wanted.unit)
    way = None if taken_over else previous.find(store, wanted, plan)
    leaving = drop_ins_by_hand(store, wanted.unit) + late_drop_ins(store, wanted.unit)
    refusals = [
        *([] if taken_over else faults),
        *([refused] if refused else []),
        *([way.sentence] if way and way.refused else []),
        *host_files.reasons(wanted, unit_text, leaving),
    ]
    return {
        "ends": [hide(line) for line in plan.summary()[:MOST]],
        "refusals": [hide(line) for line in refusals[:MOST]],
        "way_back": hide(way.sentence) if way and not way.refused else "",
        "by_hand": by_hand and dataclasses.asdict(by_hand),
    }
