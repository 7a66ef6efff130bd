"""One comparison: the figures of several ways to do the same, and what they have to be."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

OURS = "cutover"

Series = Sequence[float]
"""The figures of one way, one a run."""


@dataclass(frozen=True)
class Comparison:
    """Our figures beside those of others, measured in turn."""

    name: str
    unit: str
    figures: Mapping[str, Series]
    """By way; ours is named `cutover`."""
    limits: Mapping[str, float] = field(default_factory=dict)
    """What the ratio to each of these ways may be at most."""
    limit: float | None = None
    """What our own median may be at most."""
    note: str = ""

    @property
    def medians(self) -> dict[str, float]:
        """The middle figure of each way."""
        return {way: statistics.median(series) for way, series in self.figures.items()}

    @property
    def ratios(self) -> dict[str, float]:
        """Our median, divided by that of each other way."""
        ours = self.medians[OURS]
        return {way: ours / each for way, each in self.medians.items() if way != OURS and each}

    @property
    def missed(self) -> list[str]:
        """Each limit that is not kept, in words."""
        found = [
            f"{self.ratios[way]:.2f} of {way}, not {most:g}"
            for way, most in self.limits.items()
            if way in self.ratios and self.ratios[way] > most
        ]
        ours = self.medians[OURS]
        if self.limit is not None and ours > self.limit:
            found.append(f"{ours:.2f} {self.unit}, not {self.limit:g}")
        return found

    def to_json(self) -> dict[str, Any]:
        """For build/bench.json."""
        medians = {way: round(value, 4) for way, value in self.medians.items()}
        return {
            "name": self.name,
            "unit": self.unit,
            "ours": medians.pop(OURS),
            "others": medians,
            "ratio": {way: round(value, 3) for way, value in self.ratios.items()},
            "runs": max(map(len, self.figures.values())),
            "spread": {way: [min(series), max(series)] for way, series in self.figures.items()},
            "limits": {**self.limits, **({} if self.limit is None else {self.unit: self.limit})},
            "missed": self.missed,
            "note": self.note,
            "load": round(os.getloadavg()[0], 1),
        }


def in_turn(runs: int, ways: Mapping[str, Callable[[], float]]) -> dict[str, list[float]]:
    """The figure of each way, run after run in turn: a busy moment strikes all alike."""
    figures: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(runs):
        for way, measure in ways.items():
            figures[way].append(round(measure(), 4))
    return figures


def seconds(act: Callable[[], object]) -> float:
    """How long it takes."""
    began = time.monotonic()
    act()
    return time.monotonic() - began
