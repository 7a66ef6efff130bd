"""What a person on the host can do about cutovers: go back, and clear a lock."""

from __future__ import annotations

from typing import Any, Optional

from . import launch, lock
from .attempt import Attempt, Journal, latest, owner
from .converge import start
from .follow import Failed, await_end, follow
from .store import Store

LIVE = 3
"""Exit code of `cutover unlock` where the lock is rightly held."""


def back(store: Store) -> dict[str, Any]:
    """Serves the previous deployment again, through the same transaction.

    Raises Failed where nothing served before, or another cutover is under way.
    """
    with lock.held("converge"):
        last = _last(store)
        before = store.before()
        if last and not last.outcome:
            raise Failed(f"{last.describe()}: wait for its end, or see `cutover unlock`")
        if before is None:
            raise Failed("nothing served here before: there is nothing to go back to")
        journal = start(store, before.order, before.env_digest, owner())
    return follow(journal, "serving", whole=True)


def unlock(store: Store) -> tuple[int, str]:
    """Finishes a cutover that nobody carries on any more; exit code and sentence.

    A live one is left alone: it has deadlines, and ends by itself.
    """
    last = _last(store)
    if last is None or last.outcome:
        return 0, "nothing is locked"
    if lock.is_held("cutover"):
        return LIVE, (
            f"{last.describe()}: it is alive, so it is left alone; it ends by itself within its "
            f"deadlines, and `systemctl stop cutover-{last.id}` makes the host go back at once"
        )
    launch.recovery()
    ended = await_end(Journal(store, last.id))
    said = f"the cutover to {ended.deployment} had broken off; it is finished now"
    return 0, f"{said}: {ended.outcome}"


def _last(store: Store) -> Optional[Attempt]:
    journal = latest(store)
    return journal.load() if journal else None
