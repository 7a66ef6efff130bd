"""When an old model ended and a new one began, and how long each part of a cutover took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

DOWN = (
    "stop",
    "release",
    "gate",
    "install",
    "start",
    "weights",
    "compile",
    "capture",
    "ready",
)
"""What is measured while nothing serves, in this order; together it is that time."""

ORDER = ("drain", "prepare", *DOWN, "smoke")
"""All that an operator is shown of a cutover, in this order."""


@dataclass
class Moments:
    """In seconds since boot; 0 for what has not happened, or was not seen."""

    began: float = 0.0
    """The way to the stop begins: what is left to be written is written."""
    stop: float = 0.0
    """The first process is told to end."""
    gone: float = 0.0
    """The last one of those is dead."""
    released: float = 0.0
    installed: float = 0.0
    executed: float = 0.0
    """systemd started the new server's main process."""
    ready: float = 0.0

    @property
    def gap(self) -> float:
        """Seconds from the death of the last old process to the start of the new one; 0 where there
        was none, or it was not seen.
        """
        return self.executed - self.gone if self.gone and self.executed else 0.0


def refine(
    phases: Mapping[str, float], at: Moments, engine: Mapping[str, float]
) -> dict[str, float]:
    """Seconds of each part, from those of the transaction's phases.

    `engine` has what the engine's own log tells of the load; `ready` is the rest of that.
    """
    told = dict(phases)
    if at.stop and at.released:
        told["prepare"] = at.stop - at.began
        told["stop"] = (at.gone or at.stop) - at.stop
        told["release"] = at.released - (at.gone or at.stop)
    if at.executed and at.installed:
        told["start"] = at.executed - at.installed
        told["ready"] = at.ready - at.executed
    if "ready" in told:
        told.update(engine)
        told["ready"] -= sum(engine.values())
    return {name: round(max(0.0, seconds), 3) for name, seconds in told.items()}


def describe(phases: Mapping[str, float]) -> str:
    """The parts of a cutover in one line, for people."""
    return ", ".join(f"{name} {phases[name]:.1f} s" for name in ORDER if name in phases)
