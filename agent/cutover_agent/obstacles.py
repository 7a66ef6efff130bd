"""Why the GPUs would not be free after a release, told while the old model still serves."""

from __future__ import annotations

from .engines import is_mps
from .gate import MOST_IDLE_MIB, idle_line
from .holders import Holder, Landscape, unseen
from .policy import KEEP
from .release_plan import ReleasePlan
from .scope import Scope


def obstacles(plan: ReleasePlan, seen: Landscape, scope: Scope) -> list[str]:
    """A sentence for each thing that stands in the way of the gate."""
    reasons = [
        f"{foreign.holder.describe()} holds a GPU and is not ended: {foreign.reason}"
        for foreign in plan.foreign
    ]
    return reasons + _staying(plan, seen, scope) + _unseen(plan, seen, scope)


def _staying(plan: ReleasePlan, seen: Landscape, scope: Scope) -> list[str]:
    """Memory of MPS, displays and the like, beyond what the host's settings allow."""
    mib, names, most = {}, [], 0
    for index in seen.reading.used:
        keepers = keeping(plan, index)
        held = staying_mib(plan, seen, index)
        if keepers and held > scope.idle_mib:
            mib[index], most = held, max(most, held)
            names += [one for one in keepers if one not in names]
    if not mib:
        return []
    who = "; ".join(holder.describe() for holder in names)
    where = ", ".join(f"GPU {index} {value} MiB" for index, value in mib.items())
    hint = ""
    if any(is_mps(holder.process) for holder in names):
        hint = "stop MPS (`echo quit | nvidia-cuda-mps-control`), or, "
    return [f"{where} will stay in use by {who}: {hint}{idle_line(scope.host, most)}"]


def keeping(plan: ReleasePlan, index: int) -> list[Holder]:
    """Who holds memory of a GPU and is left alone though it is no obstacle by itself."""
    return [
        v.holder
        for v in plan.verdicts
        if v.decision.action == KEEP
        and index in v.holder.gpus
        and v.holder.mib != 0
        and not v.holder.process.dead
    ]


def staying_mib(plan: ReleasePlan, seen: Landscape, index: int) -> int:
    """What those hold: as listed, or all that the GPU reports where nobody else is there."""
    keepers = keeping(plan, index)
    alone = all(h in keepers for h in seen.holders if index in h.gpus and h.mib != 0)
    listed = sum(holder.shares.get(index, 0) for holder in keepers)
    return max(listed, seen.reading.used.get(index, 0)) if alone else listed


def _unseen(plan: ReleasePlan, seen: Landscape, scope: Scope) -> list[str]:
    found = {i: mib for i, mib in unseen(seen, scope.idle_mib).items() if i not in plan.lent}
    if not found:
        return []
    where = ", ".join(f"GPU {index} {mib} MiB" for index, mib in found.items())
    said = f"memory is in use by a process that cannot be seen here: {where}"
    most = max(found.values())
    return [f"{said}: {idle_line(scope.host, most)}" if most <= MOST_IDLE_MIB else said]
