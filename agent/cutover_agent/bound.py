"""Within which time a host serves a verified model again, whatever fails after the stop."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Optional

from . import containers, ending, gate
from .order import Order
from .way_back import TRIES

MARGIN_SECONDS = 30
"""For what has no deadline in the order: calls of systemctl, files, starts of the agent. All of
it is short, and does not grow with a model."""
READINGS = 4
"""How often nvidia-smi is asked on the way there, apart from the gate."""
READINGS_BACK = 5
"""How often it is asked in each try to go back, which has no gate."""


@dataclass(frozen=True)
class Bound:
    """The stated time, in seconds, and what it is the sum of."""

    terms: tuple[tuple[str, int], ...]

    @property
    def seconds(self) -> int:
        """From the first stop to a verified model or a named dead end; a boot comes on top."""
        return sum(seconds for _, seconds in self.terms)

    def describe(self) -> str:
        """One line for the operator."""
        parts = " + ".join(f"{name} {seconds}" for name, seconds in self.terms if seconds)
        return f"at the latest {self.seconds} s after the stop a verified model serves ({parts})"


def bound(order: Order, previous: Optional[Order], answer: float = 0.0) -> Bound:
    """Sums up the deadlines on the longest path: all goes well but the last smoke request, and the
    first of two tries to go back fails as well.

    `answer` is how many seconds nvidia-smi takes on this host to answer.
    """
    limits = order.deadlines
    stop, release = _stop(order, previous), _release(order, previous)
    terms = [
        ("hook before it", order.hooks.seconds if order.hooks.before_stop else 0),
        ("drain", previous.deadlines.drain if previous else 0),
        ("stop", release),
        ("release", limits.release),
        ("gate", max(limits.gate, math.ceil((gate.SAMPLES + 1) * answer))),
        ("load", limits.load),
        ("smoke", _smoke(order)),
    ]
    readings = READINGS
    if previous:
        # After a boot in its last moments the new model, verified already, takes the first try.
        load = max(limits.load, previous.deadlines.load)
        smoke = max(_smoke(order), _smoke(previous))
        back = stop + release + limits.release + limits.settle + load + smoke
        terms.append((f"going back {TRIES} x", TRIES * back))
        readings += TRIES * READINGS_BACK
    else:
        terms.append(("stop of the new one", stop))
    terms.append(("hook", order.hooks.seconds if _after(order) else 0))
    terms.append(("answers of nvidia-smi", math.ceil(readings * answer)))
    return Bound((*terms, ("margin", MARGIN_SECONDS)))


def _stop(order: Order, previous: Optional[Order]) -> int:
    """Until one unit is gone, or counts as unkillable."""
    waits = [order.deadlines.stop] + ([previous.deadlines.stop] if previous else [])
    return max(waits) + order.deadlines.kill


def _release(order: Order, previous: Optional[Order]) -> int:
    """Until containers, engines outside of units, and then the units are gone, or unkillable."""
    kill = order.deadlines.kill
    seconds = _stop(order, previous) - kill
    boxed = len(order.also_end) * (seconds + containers.CALL_SECONDS)
    return boxed + math.ceil(ending.longest(seconds, kill)) + kill


def _smoke(order: Order) -> int:
    return order.deadlines.smoke * order.probe.requests


def _after(order: Order) -> bool:
    return bool(order.hooks.after_commit or order.hooks.after_rollback)
