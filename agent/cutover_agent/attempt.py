"""One transaction's own record: how far it is, how it ended, and what it said on the way."""

from __future__ import annotations

import dataclasses
import json
import os
import pwd
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

from .clock import boot_id, now, wall
from .files import read_json, write_json
from .install import Replaced
from .mask import hide
from .order import Order, read
from .store import Serving, Store

PHASES = ("stage", "drain", "release", "gate", "install", "start", "ready", "smoke", "commit")
"""What a transaction does, in this order."""

UNDO, RESTORE = "undo", "restore"
"""What its way back does: take away what was put there, and serve again what served before."""

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
    """Boot in which it runs: a transaction that is open in another boot broke off."""
    number: int = 0
    """Counts the transactions of this host: the clock may be set back."""
    env_digest: str = ""
    """SHA-256 of the environment file that it installs."""
    owner: str = ""
    """Who began it, and from where."""
    since: float = 0.0
    """When it began, in seconds since the epoch."""
    begun: list[str] = field(default_factory=list)
    """Phases whose first act may have happened, in order."""
    done: list[str] = field(default_factory=list)
    """Phases that are over, in order."""
    loading_since: float = 0.0
    """When the new unit was started, in seconds since boot; 0 before."""
    tries: int = 0
    """How often the way back was tried."""
    outcome: str = ""
    """Empty while it runs; then ``serving``, ``refused``, ``rolled-back`` or ``dead-end``."""
    error: str = ""
    """What failed first; set before the way back begins."""
    dead_end: str = ""
    """Which of the named dead ends it came to, if it did."""
    told: bool = False
    """Whether a step has reported the failure to the operator."""
    evidence: dict[str, Any] = field(default_factory=dict)

    @property
    def phase(self) -> str:
        """What it does, or did last."""
        return self.begun[-1] if self.begun else ""

    @property
    def failed(self) -> bool:
        """Whether it ended without serving what was ordered."""
        return self.outcome not in ("", "serving")

    def reached(self, until: str) -> bool:
        """Whether the part that a step of this name stands for is over."""
        return UNTIL[until] in self.done

    def describe(self) -> str:
        """Who changes what, for how long, and how far that is."""
        age = max(0, round(wall() - self.since))
        by = f" by {self.owner}" if self.owner else ""
        return f"a cutover to {self.deployment}{by} is under way, {age} s old, in {self.phase}"


def new_id() -> str:
    """A transaction's name; sorts by time."""
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime(wall())) + "-" + secrets.token_hex(2)


def owner() -> str:
    """Who runs this, and from where, as far as the host knows."""
    name = os.environ.get("SUDO_USER") or pwd.getpwuid(os.getuid()).pw_name
    client = os.environ.get("SSH_CONNECTION", "").partition(" ")[0]
    return f"{name} from {client}" if client else name


class Journal:
    """Where an attempt is kept, and its event log."""

    def __init__(self, store: Store, name: str) -> None:
        self.store = store
        self.folder: Path = store.transactions / name
        self.name = name

    def create(self, order: Order, env_digest: str = "", owner: str = "") -> Attempt:
        """Opens the record of a new transaction; it is there once its state is."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_json(self.folder / "order.json", json.loads(order.to_json()))
        number = max((attempt.number for attempt in attempts(self.store).values()), default=0) + 1
        attempt = Attempt(
            self.name,
            order.digest,
            order.deployment,
            boot_id(),
            number,
            env_digest,
            owner,
            wall(),
        )
        self.save(attempt)
        return attempt

    def set_previous(self, previous: Optional[Serving]) -> None:
        """Keeps the way back; None where there is none."""
        value = None if previous is None else dataclasses.asdict(previous)
        write_json(self.folder / "previous.json", value)

    def previous(self) -> Optional[Serving]:
        """The way back that was kept before anything was stopped."""
        value = read_json(self.folder / "previous.json", None)
        return None if value is None else read(Serving, value, "previous.json")

    def set_replaced(self, replaced: Sequence[Replaced]) -> None:
        """Keeps what an install is about to replace."""
        write_json(self.folder / "replaced.json", [dataclasses.asdict(was) for was in replaced])

    def replaced(self) -> list[Replaced]:
        """What the install replaced, or was about to."""
        found = read_json(self.folder / "replaced.json", [])
        return [read(Replaced, value, "replaced.json") for value in found]

    def load(self) -> Optional[Attempt]:
        """The attempt as last saved; None where there is none."""
        value = read_json(self.folder / "state.json", None)
        return None if value is None else read(Attempt, value, "state.json")

    def order(self) -> Order:
        """The order that the transaction carries out."""
        return read(Order, read_json(self.folder / "order.json", None), "order.json")

    def save(self, attempt: Attempt) -> None:
        """Keeps the attempt's state."""
        attempt.error = hide(attempt.error)
        write_json(self.folder / "state.json", dataclasses.asdict(attempt))

    def note_step(self) -> None:
        """Remembers that a step reported success of its part just now."""
        self._keep_step({"boot": boot_id(), "at": now()})

    def forget_step(self) -> None:
        """Remembers that the next step has come: a failure from here on is told by that one."""
        self._keep_step({})

    def _keep_step(self, value: dict[str, Any]) -> None:
        with suppress(OSError):  # a full disk is no reason to end before the transaction does
            write_json(self.folder / "step.json", value)

    def last_step(self) -> float:
        """When a step last reported success, in seconds since boot; 0 if none did in this boot."""
        found = read_json(self.folder / "step.json", {})
        return float(found["at"]) if found and found.get("boot") == boot_id() else 0.0

    def tell(self, phase: str, text: str) -> None:
        """Adds a line to the event log."""
        event = {
            "at": round(now(), 3),
            "time": round(wall(), 3),
            "phase": phase,
            "text": hide(text),
        }
        with open(self.folder / "events.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(event) + "\n")

    def events(self) -> list[dict[str, Any]]:
        """The event log so far; a line that is still being written is left out."""
        try:
            text = (self.folder / "events.jsonl").read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in text.split("\n")[:-1]]


def attempts(store: Store) -> dict[str, Attempt]:
    """Every transaction that the host remembers, by name, oldest first."""
    names = [path.name for path in store.transactions.iterdir()]
    found = {name: Journal(store, name).load() for name in names}
    there = [(name, attempt) for name, attempt in found.items() if attempt]
    return dict(sorted(there, key=lambda pair: (pair[1].number, pair[0])))


def latest(store: Store) -> Optional[Journal]:
    """The newest transaction of this host."""
    names = list(attempts(store))
    return Journal(store, names[-1]) if names else None
