"""The gate: the assertion that the GPUs report 0 MiB used."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Callable, Optional

from .clock import Deadline, now
from .gpus import Reading
from .scope import Scope

SAMPLES = 3
"""Readings in a row that must agree: during a release memory can jump down and up again."""

APART_SECONDS = 0.05
"""At least so far apart they begin: taken all at once, they would be one reading. What a reading
takes counts, so that a tool that is slow anyhow is not waited for on top."""

MOST_IDLE_MIB = 1024
"""More than this is no idle card: a CUDA context alone takes some hundred MiB."""

Lent = frozenset[str]


@dataclass(frozen=True)
class Verdict:
    """What a series of readings proves."""

    open: bool
    reason: str
    """Why the gate is not open; empty when it is."""


def judge(readings: Sequence[Reading], scope: Scope, lent: Lent = frozenset()) -> Verdict:
    """Whether the newest readings, oldest first, prove that the GPUs are free.

    All GPUs of the host count, but for those `lent` (UUIDs): GPUs outside the scope on which
    nobody but a neighbouring model is seen.
    """
    if not readings:
        return Verdict(False, "no reading yet")
    reason = why_not_free(readings[-1], scope, lent)
    if reason:
        return Verdict(False, reason)
    recent = readings[-SAMPLES:]
    if len(recent) < SAMPLES or any(why_not_free(reading, scope, lent) for reading in recent):
        return Verdict(False, f"{threshold(scope)}, but not yet in {SAMPLES} readings in a row")
    return Verdict(True, "")


def why_not_free(reading: Reading, scope: Scope, lent: Lent = frozenset()) -> str:
    """Why one reading is not "free"; empty when it is. What is not known is never free."""
    if reading.problem:
        return reading.problem
    if len(reading.gpus) != scope.host_gpus:
        return f"{len(reading.gpus)} GPUs answer, {scope.host_gpus} are expected"
    missing = scope.uuids - {gpu.uuid for gpu in reading.gpus}
    if missing:
        return f"{', '.join(sorted(missing))} does not answer any more"
    excused = lent - scope.uuids
    busy = [
        f"GPU {gpu.index} {gpu.used_mib} MiB"
        for gpu in reading.gpus
        if gpu.used_mib > scope.idle_mib and gpu.uuid not in excused
    ]
    return ", ".join(busy)


def threshold(scope: Scope) -> str:
    """What counts as free, for people."""
    return f"at most {scope.idle_mib} MiB (idle_mib)" if scope.idle_mib else "0 MiB"


def remainder(readings: Sequence[Reading], scope: Scope, lent: Lent = frozenset()) -> Optional[int]:
    """The MiB that stay on idle cards, the most of any; None where it is not that.

    It is when every GPU that is not free shows a little, the same in several readings in a row.
    """
    recent = readings[-SAMPLES:]
    if len(recent) < SAMPLES or any(r.problem or r.gpus != recent[0].gpus for r in recent):
        return None
    excused = lent - scope.uuids
    most = max((g.used_mib for g in recent[0].gpus if g.uuid not in excused), default=0)
    return most if scope.idle_mib < most <= MOST_IDLE_MIB else None


def idle_line(host: str, mib: int) -> str:
    """What to paste into the stack's config for a host that idles at so many MiB."""
    return (
        f"if that is what this host shows when nothing runs, add this line under `{host}:` in "
        f"cutover:hosts of the stack's config:\n      idle_mib: {mib}"
    )


@dataclass(frozen=True)
class Passage:
    """How the gate was passed, or not."""

    verdict: Verdict
    readings: tuple[Reading, ...]
    seconds: float

    @property
    def last(self) -> Reading:
        """The newest reading."""
        return self.readings[-1]


def wait_open(
    read: Callable[[], Reading],
    scope: Scope,
    seconds: float,
    tell: Callable[[str], None],
    lent: Lent = frozenset(),
) -> Passage:
    """Samples until the gate is open or `seconds` are over.

    Where an answer takes long, the deadline moves so far that enough readings fit into it.
    """
    readings: list[Reading] = []
    deadline = Deadline(seconds)
    while True:
        asked = now()
        readings.append(read())
        verdict = judge(readings, scope, lent)
        if verdict.open or deadline.passed:
            return Passage(verdict, tuple(readings), deadline.spent)
        busy = why_not_free(readings[-1], scope, lent)
        if busy:
            tell(f"waiting for {threshold(scope)}: {busy}")
        if not readings[-1].problem:
            deadline.seconds = max(deadline.seconds, (SAMPLES + 1) * (now() - asked))
        time.sleep(max(0.0, min(asked + APART_SECONDS - now(), deadline.left)))


def gate_proof(passage: Passage, scope: Scope, before: Reading) -> dict[str, Any]:
    """The gate's result for people and programs; memory in MiB."""
    was = {gpu.uuid: gpu.used_mib for gpu in before.gpus}
    gpus = [gpu for gpu in passage.last.gpus if gpu.uuid in scope.uuids]
    lent = len(passage.last.gpus) - sum(
        1 for gpu in passage.last.gpus if gpu.used_mib <= scope.idle_mib
    )
    free = len(passage.last.gpus) - lent
    beside = f", {lent} serve a neighbour" if lent else ""
    return {
        "line": (
            f"{free} of {len(passage.last.gpus)} GPUs report {threshold(scope)}{beside} "
            f"(before: {before.total_mib} MiB), {len(passage.readings)} readings, "
            f"{passage.seconds:.2f} s"
        ),
        "seconds": round(passage.seconds, 3),
        "gpus": [
            {
                "index": gpu.index,
                "uuid": gpu.uuid,
                "before_mib": was.get(gpu.uuid),
                "after_mib": gpu.used_mib,
            }
            for gpu in gpus
        ],
    }
