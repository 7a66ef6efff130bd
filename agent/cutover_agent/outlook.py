"""What a release would meet now, and what `stage` would refuse: read only."""

from __future__ import annotations

import dataclasses
from typing import Any, Optional

from . import checks, host_files, install, systemd
from .adopt import compare
from .gpus import read_gpus, read_rows
from .holders import Landscape, look
from .mask import hide
from .order import Order
from .release_plan import plan_release
from .store import Store

MOST = 16
"""Holders and refusals that are told; a box has 8 GPUs and a few processes on each."""


def outlook(
    store: Store, wanted: Optional[Order], unit_text: str, seconds: float
) -> dict[str, Any]:
    """GPUs, who holds them, and what stands in the way of an order and its unit's text."""
    seen = look(read_gpus(seconds), read_rows(seconds), systemd.main_pids())
    ours = store.units() if store.root.is_dir() else frozenset()
    return {
        "gpus": {
            "problem": seen.reading.problem,
            "used_mib": [gpu.used_mib for gpu in seen.reading.gpus],
        },
        "holders": _holders(seen, ours),
        **(_ahead(store, wanted, unit_text, seen, ours) if wanted else {}),
    }


def _holders(seen: Landscape, ours: frozenset[str]) -> list[dict[str, Any]]:
    return [
        {
            "pid": holder.process.pid,
            "title": hide(holder.process.title)[:80],
            "user": holder.process.user,
            "unit": holder.process.unit,
            "gpus": sorted(holder.gpus),
            "mib": holder.mib,
            "ours": holder.process.unit in ours,
        }
        for holder in seen.holders[:MOST]
    ]


def _ahead(
    store: Store, wanted: Order, unit_text: str, seen: Landscape, ours: frozenset[str]
) -> dict[str, Any]:
    running = checks.running_units(store) if ours else frozenset()
    plan = plan_release(seen, ours | {wanted.unit}, running, wanted.policy)
    by_hand = compare(store, wanted.unit, unit_text, "") if unit_text else None
    refused = None if by_hand and not by_hand.differences else install.refusal(store, wanted.unit)
    refusals = [
        *checks.gpu_reasons(seen.reading, wanted.host_gpus),
        *([refused] if refused else []),
        *host_files.reasons(wanted, unit_text),
        *checks.foreign_reasons(plan, seen.reading, wanted.host_gpus),
    ]
    return {
        "ends": [hide(line) for line in plan.summary()[:MOST]],
        "refusals": [hide(line) for line in refusals[:MOST]],
        "by_hand": by_hand and dataclasses.asdict(by_hand),
    }
