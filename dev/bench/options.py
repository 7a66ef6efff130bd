"""What a run of the comparisons was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """How often, and how large."""

    runs: int
    """Runs of which a median is taken."""
    hosts: Sequence[int]
    """Sizes of the fleets that are compared."""
    quick: bool
    """Only to see that the comparisons work: small, once."""
