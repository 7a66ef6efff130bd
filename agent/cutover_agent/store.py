"""What the host remembers: texts, who owns them, what is installed, what serves, orders."""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import os
import secrets
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

from .files import read_json, read_text, remove, write_atomic, write_json
from .order import Order, OrderError, read, text_digest

STORE = Path("/var/lib/cutover")
RESERVES, RESERVE_BYTES = 3, 128 << 10
"""A way back, a recovery after it, and the end of the record write a few files of some KiB each;
the next of them has room even where a full disk swallowed that of the one before."""
LOST = "run `pulumi up` with `facts: true`, which sees that and puts it there again"


@dataclass(frozen=True)
class Record:
    """What one resource of the program owns on this host."""

    owner: str
    """Component type and logical name of the resource."""
    kind: str
    """``unit``, ``env`` or ``service``."""
    deployment: str
    unit: str
    digest: str = ""
    """SHA-256 of the text that was put; empty for a service."""


@dataclass(frozen=True)
class Serving:
    """The last order that was committed: what this host serves, and how that was proven."""

    order: Order
    env_digest: str
    transaction: str
    since: float
    """Seconds since the epoch."""
    evidence: dict[str, Any] = field(default_factory=dict)
    stale: bool = False
    """Whether its process was started from files that somebody had changed by hand."""

    @property
    def foreign(self) -> bool:
        """Whether it is a unit of somebody else, whose files are not ours to write."""
        return not self.order.unit_digest


def name_of(owner: str) -> str:
    """An owner's logical name, without the type of its component."""
    return owner.rpartition("::")[2]


class Store:
    """The agent's folder; every write is atomic."""

    def __init__(self, root: Path = STORE) -> None:
        self.root = root
        self.transactions = root / "transactions"

    def prepare(self) -> None:
        """Makes the folders, closed to everybody but root."""
        for folder in (self.root, self.root / "texts", self.transactions, self.root / "saved"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def reserve(self) -> None:
        """Sets room on the disk aside, so that a full one does not keep a roll-back from ending."""
        for number in range(RESERVES):
            path = self.root / f"reserve-{number}"
            if not path.exists():
                write_atomic(path, "\0" * RESERVE_BYTES)

    def spend_reserve(self) -> None:
        """Makes a part of that room free; nothing where all is spent."""
        left = sorted(self.root.glob("reserve-*"))
        if left:
            left[0].unlink(missing_ok=True)

    # Texts are kept under their digest, so that a roll-back finds what it replaced.

    def keep(self, text: str) -> str:
        """Stores a text and returns its SHA-256."""
        digest = text_digest(text)
        path = self.root / "texts" / digest
        if not path.exists():
            write_atomic(path, text)
        return digest

    def find(self, digest: str) -> str:
        """A stored text, or an empty one where it is not on this host."""
        return read_text(self.root / "texts" / digest) or "" if digest else ""

    def text(self, digest: str) -> str:
        """A stored text; OrderError where it is not on this host."""
        text = read_text(self.root / "texts" / digest)
        if text is None:
            raise OrderError(f"text {digest[:12]} is gone from {self.root}: {LOST}")
        return text

    def receipt(self, digest: str) -> str:
        """A name for a text that says nothing about it to those who can guess the text."""
        path = self.root / "receipt.key"
        if not path.exists():
            write_atomic(path, secrets.token_hex(32))
        key = bytes.fromhex(path.read_text())
        return hmac.new(key, digest.encode(), hashlib.sha256).hexdigest()[:12]

    # Owners.

    def records(self) -> dict[str, Record]:
        """Everything that the program's resources own here, by owner."""
        found = read_json(self.root / "owners.json", {})
        return {owner: read(Record, value, "owners.json") for owner, value in found.items()}

    def own(self, record: Record) -> None:
        """Makes `record.owner` the one owner of what the record names.

        Who owned it until now owns it no more: its resource was renamed, and will be deleted.
        """
        what = (record.kind, record.deployment)
        others = {o: r for o, r in self.records().items() if (r.kind, r.deployment) != what}
        self._write_records({**others, record.owner: record})

    def owned_by(self, owner: str) -> Optional[Record]:
        """What a resource owns: it is known by its logical name, its type may have been renamed."""
        same = (r for o, r in self.records().items() if name_of(o) == name_of(owner))
        return next(same, None)

    def disown(self, owner: str) -> None:
        """Forgets an owner; what it owned stays."""
        kept = {o: r for o, r in self.records().items() if name_of(o) != name_of(owner)}
        self._write_records(kept)

    def name_unit(self, deployment: str, unit: str) -> None:
        """Tells which unit a deployment's texts are for; their puts may have said another one,
        where the host could not be asked and so their command lines stayed as they were.
        """
        known = self.records()
        found = {
            owner: dataclasses.replace(r, unit=unit) if r.deployment == deployment else r
            for owner, r in known.items()
        }
        if found != known:
            self._write_records(found)

    def _write_records(self, records: dict[str, Record]) -> None:
        value = {owner: dataclasses.asdict(record) for owner, record in records.items()}
        write_json(self.root / "owners.json", value)

    def put_digest(self, kind: str, deployment: str) -> str:
        """Digest of a deployment's put text of that kind; OrderError where there is none."""
        for record in self.records().values():
            if (record.kind, record.deployment) == (kind, deployment):
                return record.digest
        raise OrderError(f"{deployment}: its {kind} text is not on this host: {LOST}")

    def put_units(self, unit: str) -> frozenset[str]:
        """Digests of the texts that were put for a unit's file."""
        mine = (r for r in self.records().values() if (r.kind, r.unit) == ("unit", unit))
        return frozenset(record.digest for record in mine)

    def units(self) -> frozenset[str]:
        """The units of this program: put here, or written by it and not yet removed."""
        put = {record.unit for record in self.records().values()}
        written = {Path(path).name for path in self.installed() if path.endswith(".service")}
        return frozenset(put | written)

    # Files outside the store that the agent wrote.

    def installed(self) -> dict[str, str]:
        """Path and SHA-256 of every file that the agent wrote outside its store."""
        return dict(read_json(self.root / "installed.json", {}))

    def note_installed(self, path: Path, digest: str) -> None:
        """Remembers a file as written by the agent; an empty digest forgets it."""
        known = self.installed()
        files = {p: d for p, d in {**known, str(path): digest}.items() if d}
        if files != known:
            write_json(self.root / "installed.json", files)

    # What serves, and what shall serve.

    def serving(self) -> Serving | None:
        """The last committed order; None before the first one."""
        value = read_json(self.root / "serving.json", None)
        return None if value is None else read(Serving, value, "serving.json")

    def set_serving(self, serving: Serving | None) -> None:
        """Remembers what the host serves now."""
        if serving is None:
            remove(self.root / "serving.json")
        else:
            write_json(self.root / "serving.json", dataclasses.asdict(serving))

    def before(self) -> Serving | None:
        """What served before that; None where nothing did."""
        value = read_json(self.root / "before.json", None)
        return None if value is None else read(Serving, value, "before.json")

    def set_before(self, serving: Serving | None) -> None:
        """Remembers what `cutover back` serves again; a unit of somebody else is none of that."""
        if serving is None or serving.foreign:
            remove(self.root / "before.json")
        else:
            write_json(self.root / "before.json", dataclasses.asdict(serving))

    def staged(self) -> Order | None:
        """The last order that passed every check of `stage`."""
        value = read_json(self.root / "staged.json", None)
        return None if value is None else read(Order, value, "staged.json")

    def set_staged(self, order: Order) -> None:
        """Leaves the complete, checked order on the host."""
        write_atomic(self.root / "staged.json", order.to_json())

    def forget_texts(self, kept: Collection[str] = ()) -> None:
        """Drops the texts that nothing refers to any more, but those `kept`."""
        wanted = set(kept)
        wanted |= {record.digest for record in self.records().values()}
        wanted |= set(self.installed().values())
        for serving in filter(None, (self.serving(), self.before())):
            wanted |= {serving.order.unit_digest, serving.env_digest}
        for path in (self.root / "texts").iterdir():
            if path.name not in wanted:
                os.unlink(path)
