"""The gate: the assertion that every GPU of the host reports 0 MiB used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Callable

from .clock import Deadline, wait_for
from .gpus import Reading

SAMPLES = 3
"""Readings in a row that must agree: during a release memory can jump down and up again."""


@dataclass(frozen=True)
class Verdict:
    """What a series of readings proves."""

    open: bool
    reason: str
    """Why the gate is not open; empty when it is."""


def judge(readings: Sequence[Reading], host_gpus: int) -> Verdict:
    """Whether the newest readings, oldest first, prove that all GPUs of the host are free."""
    if not readings:
        return Verdict(False, "no reading yet")
    last = readings[-1]
    reason = why_not_free(last, host_gpus)
    if reason:
        return Verdict(False, reason)
    recent = readings[-SAMPLES:]
    if len(recent) < SAMPLES or any(why_not_free(reading, host_gpus) for reading in recent):
        return Verdict(False, f"0 MiB, but not yet in {SAMPLES} readings in a row")
    return Verdict(True, "")


def why_not_free(reading: Reading, host_gpus: int) -> str:
    """Why one reading is not "free"; empty when it is. What is not known is never free."""
    if reading.problem:
        return reading.problem
    if len(reading.gpus) != host_gpus:
        return f"{len(reading.gpus)} GPUs answer, {host_gpus} are expected"
    busy = [f"GPU {gpu.index} {gpu.used_mib} MiB" for gpu in reading.gpus if gpu.used_mib]
    return ", ".join(busy)


@dataclass(frozen=True)
class Passage:
    """How the gate was passed, or not."""

    verdict: Verdict
    last: Reading
    samples: int
    seconds: float


def wait_open(
    read: Callable[[], Reading],
    host_gpus: int,
    seconds: float,
    tell: Callable[[str], None],
) -> Passage:
    """Samples until the gate is open or `seconds` are over."""
    readings: list[Reading] = []
    deadline = Deadline(seconds)

    def sample() -> bool:
        readings.append(read())
        busy = why_not_free(readings[-1], host_gpus)
        if busy:
            tell(f"waiting for 0 MiB: {busy}")
        return judge(readings, host_gpus).open

    wait_for(sample, deadline)
    return Passage(judge(readings, host_gpus), readings[-1], len(readings), deadline.spent)
