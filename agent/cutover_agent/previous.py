"""What a cutover goes back to when it fails."""

from __future__ import annotations

from typing import Optional

from . import capture, systemd
from .checks import Refused
from .order import Order
from .release_plan import ReleasePlan
from .store import Serving, Store


def way_back(store: Store, order: Order, plan: ReleasePlan) -> tuple[Optional[Serving], str]:
    """The way back, and a sentence about it; Refused where there should be one and is none."""
    committed = store.serving()
    if committed and not systemd.state(committed.order.unit).down:
        return committed, f"{committed.order.deployment} is the way back"
    answering = [(tree, capture.ask(tree)) for tree in plan.end]
    servers = [(tree, asked) for tree, asked in answering if asked]
    if not servers and committed:
        return committed, f"{committed.order.deployment}, which does not run, is the way back"
    if not servers:
        return None, "there is no way back: nothing serves here now"
    tree, asked = servers[0]
    who = ", ".join(f"pid {tree.root.pid} ({tree.root.title})" for tree, _ in servers)
    kept = capture.keep(store, order, tree, asked) if len(servers) == 1 else None
    if kept:
        return kept, (
            f"{who}, started by hand, is the way back, best effort: it would run again as "
            f"{kept.order.unit}, with the command, environment, folder and user that it has now"
        )
    why = "more than one serves" if len(servers) > 1 else "its environment cannot be read"
    if order.accept_no_rollback:
        return None, f"there is no way back to {who} ({why}), as accept_no_rollback allows"
    raise Refused(
        f"there would be no way back to {who}: {why}: end it yourself, or set "
        "`accept_no_rollback: true` for this host"
    )
