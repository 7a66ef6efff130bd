"""What earlier cutovers of this host took."""

from __future__ import annotations

from .attempt import Journal
from .store import Store

READ = 50
"""How many transactions are looked at, newest first."""


def last_loads(store: Store) -> dict[str, float]:
    """Seconds that the last load of each deployment took."""
    found: dict[str, float] = {}
    names = sorted((path.name for path in store.transactions.iterdir()), reverse=True)
    for name in names[:READ]:
        attempt = Journal(store, name).load()
        if attempt and attempt.outcome == "serving" and "load_seconds" in attempt.evidence:
            found.setdefault(attempt.deployment, attempt.evidence["load_seconds"])
    return found
