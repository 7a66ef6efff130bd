"""Why a gate stayed closed, and what to do about it."""

from __future__ import annotations

from .gate import Passage, idle_line, remainder, threshold
from .holders import Landscape
from .obstacles import keeping
from .release_plan import ReleasePlan
from .scope import Scope


class GateClosed(RuntimeError):
    """Not every GPU is free."""


def why_closed(passage: Passage, scope: Scope, plan: ReleasePlan, seen: Landscape) -> str:
    """The reason, who holds the GPUs, and the line to paste where an idle card is never at 0."""
    lent = frozenset(gpu.uuid for gpu in seen.reading.gpus if gpu.index in plan.lent)
    said = f"not every GPU reports {threshold(scope)} ({passage.verdict.reason})"
    holders = [holder for holder in seen.holders if holder.mib != 0]
    keepers = [k for gpu in seen.reading.gpus for k in keeping(plan, gpu.index)]
    shown = "; ".join(holder.describe() for holder in holders)
    said += f": {shown}" if shown else ", and no process is seen that holds it"
    most = remainder(passage.readings, scope, lent)
    if most is not None and all(holder in keepers for holder in holders):
        said += f": {idle_line(scope.host, most)}"
    return said
