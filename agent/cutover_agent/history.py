"""What earlier cutovers of this host took."""

from __future__ import annotations

from .attempt import attempts
from .store import Store

READ = 50
"""How many transactions are looked at, newest first."""


def last_loads(store: Store) -> dict[str, float]:
    """Seconds that the last load of each deployment took."""
    found: dict[str, float] = {}
    for attempt in list(reversed(attempts(store).values()))[:READ]:
        if attempt.outcome == "serving" and "load_seconds" in attempt.evidence:
            found.setdefault(attempt.deployment, attempt.evidence["load_seconds"])
    return found
