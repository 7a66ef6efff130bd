"""Earlier cutovers of this host: how many are remembered, and what they took."""

from __future__ import annotations

import shutil

from .attempt import attempts
from .store import Store

KEPT = 50
"""How many transactions a host remembers."""


def make_room(store: Store) -> None:
    """Forgets the oldest transactions, so that with a new one there are no more than KEPT."""
    kept = list(attempts(store))[-(KEPT - 1) :]
    for folder in store.transactions.iterdir():
        if folder.name not in kept:
            shutil.rmtree(folder)


def last_loads(store: Store) -> dict[str, float]:
    """Seconds that the last load of each deployment took."""
    found: dict[str, float] = {}
    for attempt in reversed(attempts(store).values()):
        if attempt.outcome == "serving" and "load_seconds" in attempt.evidence:
            found.setdefault(attempt.deployment, attempt.evidence["load_seconds"])
    return found


def last_phases(store: Store) -> dict[str, dict[str, float]]:
    """Seconds of each part of the last cutover to each deployment that stopped another model."""
    found: dict[str, dict[str, float]] = {}
    for attempt in reversed(attempts(store).values()):
        phases = attempt.evidence.get("phases", {})
        if attempt.outcome == "serving" and phases.get("stop"):
            found.setdefault(attempt.deployment, phases)
    return found
