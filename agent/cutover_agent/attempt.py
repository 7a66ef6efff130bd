"""One transaction's own record: how far it is, how it ended, and what it said on the way."""

from __future__ import annotations

import dataclasses
import json
import secrets
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

from .clock import boot_id, now, wall
from .files import read_json, write_json
from .order import Order, read
from .store import Store

PHASES = ("stage", "release", "gate", "install", "start", "ready", "smoke", "commit")
"""What a transaction does, in this order."""

UNTIL = {
    "staged": "stage",
    "released": "release",
    "gated": "gate",
    "installed": "install",
    "serving": "commit",
}
"""The last phase that has to be over for a step of that name to succeed."""


@dataclass
class Attempt:
    """State of one transaction; a new file version after every change."""

    id: str
    order: str
    """Digest of the order that it carries out."""
    deployment: str
    boot: str
    """Boot in which it runs: a transaction of another boot is over."""
    done: list[str] = field(default_factory=list)
    """Phases that are over, in order."""
    outcome: str = ""
    """Empty while it runs; then ``serving``, ``refused``, ``rolled-back`` or ``dead-end``."""
    error: str = ""
    told: bool = False
    """Whether a step has reported the failure to the operator."""
    evidence: dict[str, Any] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether it ended without serving what was ordered."""
        return self.outcome not in ("", "serving")

    def reached(self, until: str) -> bool:
        """Whether the part that a step of this name stands for is over."""
        return UNTIL[until] in self.done


def new_id() -> str:
    """A transaction's name; sorts by time."""
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime(wall())) + "-" + secrets.token_hex(2)


class Journal:
    """Where an attempt is kept, and its event log."""

    def __init__(self, store: Store, name: str) -> None:
        self.folder: Path = store.transactions / name
        self.name = name

    def create(self, order: Order) -> Attempt:
        """Opens the record of a new transaction."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_json(self.folder / "order.json", json.loads(order.to_json()))
        attempt = Attempt(self.name, order.digest, order.deployment, boot_id())
        self.save(attempt)
        return attempt

    def load(self) -> Optional[Attempt]:
        """The attempt as last saved; None where there is none."""
        value = read_json(self.folder / "state.json", None)
        return None if value is None else read(Attempt, value, "state.json")

    def order(self) -> Order:
        """The order that the transaction carries out."""
        return Order.from_json((self.folder / "order.json").read_text())

    def save(self, attempt: Attempt) -> None:
        """Keeps the attempt's state."""
        write_json(self.folder / "state.json", dataclasses.asdict(attempt))

    def note_step(self) -> None:
        """Remembers that a step reported success of its part just now."""
        write_json(self.folder / "step.json", now())

    def last_step(self) -> float:
        """When a step last reported success, in seconds since boot; 0 if none did."""
        return float(read_json(self.folder / "step.json", 0.0))

    def tell(self, phase: str, text: str) -> None:
        """Adds a line to the event log."""
        event = {"at": round(now(), 3), "time": round(wall(), 3), "phase": phase, "text": text}
        with open(self.folder / "events.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(event) + "\n")

    def events(self) -> list[dict[str, Any]]:
        """The event log so far; a line that is still being written is left out."""
        try:
            text = (self.folder / "events.jsonl").read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def latest(store: Store) -> Optional[Journal]:
    """The newest transaction of this host."""
    names = sorted(p.name for p in store.transactions.iterdir() if (p / "state.json").exists())
    return Journal(store, names[-1]) if names else None
