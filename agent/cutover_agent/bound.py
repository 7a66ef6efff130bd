"""Within which time a host serves a verified model again, whatever fails after the stop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from . import ending, systemd
from .order import Order
from .phases import SETTLE_SECONDS
from .way_back import TRIES

MARGIN_SECONDS = 30
"""For calls of systemctl, files, and readings of the GPUs, which are short each."""


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


def bound(order: Order, previous: Optional[Order]) -> Bound:
    """Sums up the deadlines on the longest path: all goes well but the last smoke request, and the
    first of two tries to go back fails as well.
    """
    to_stop = _stop(order, previous)
    terms = [
        ("drain", order.hooks.seconds if order.hooks.before_stop else 0),
        ("stop", to_stop),
        ("release", order.deadlines.release),
        ("gate", order.deadlines.gate),
        ("load", order.deadlines.load),
        ("smoke", _smoke(order)),
    ]
    if previous:
        # After a boot in its last moments the new model, verified already, takes the first try.
        load = max(order.deadlines.load, previous.deadlines.load)
        smoke = max(_smoke(order), _smoke(previous))
        back = to_stop + order.deadlines.release + SETTLE_SECONDS + load + smoke
        terms.append((f"going back {TRIES} x", TRIES * back))
    else:
        terms.append(("stop of the new one", to_stop))
    terms.append(("hook", order.hooks.seconds if _after(order) else 0))
    return Bound((*terms, ("margin", MARGIN_SECONDS)))


def _stop(order: Order, previous: Optional[Order]) -> int:
    """Until units, and engines outside of them, are gone or count as unkillable."""
    waits = [order.deadlines.stop] + ([previous.deadlines.stop] if previous else [])
    return 2 * max(waits) + systemd.KILL_SECONDS + 5 + ending.KILL_SECONDS


def _smoke(order: Order) -> int:
    return order.deadlines.smoke * order.probe.requests


def _after(order: Order) -> bool:
    return bool(order.hooks.after_commit or order.hooks.after_rollback)
