"""What the host has read ahead, as the unit that does it tells the step and the transaction."""

from __future__ import annotations

from typing import Any, Optional

from .files import read_json, remove, write_json
from .order import Order
from .store import Store


def save(store: Store, order: Order, report: dict[str, Any]) -> None:
    """Tells how far it is: a `line` for people, and once it is `over` the figures."""
    write_json(store.root / "warm.json", {"order": order.digest, **report})


def load(store: Store) -> dict[str, Any]:
    """What was told last; empty where nothing was."""
    return dict(read_json(store.root / "warm.json", {}))


def forget(store: Store) -> None:
    """Makes room for another one."""
    remove(store.root / "warm.json")


def take(store: Store, order: Order) -> Optional[dict[str, Any]]:
    """The figures for this very order, told once; None where it was not read ahead."""
    report = load(store)
    forget(store)
    mine = report.pop("order", "") == order.digest and "percent" in report
    return report if mine and report.pop("over", False) else None
