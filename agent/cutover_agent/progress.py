"""A transaction's record: a phase is on disk before its first act, and after its last."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from . import environment
from .attempt import UNDO, Attempt, Journal
from .clock import now


class Progress:
    """The record of the transaction that this process carries out."""

    def __init__(self, journal: Journal, attempt: Attempt) -> None:
        self.journal, self.attempt = journal, attempt

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """One phase; an exception leaves it begun and not done."""
        attempt, started = self.attempt, now()
        attempt.begun.append(name)
        self.save()
        yield
        seconds: dict[str, Any] = attempt.evidence.setdefault("phases", {})
        seconds[name] = round(now() - started, 3)
        attempt.done.append(name)
        try:
            self.save()
        except OSError:
            attempt.done.remove(name)
            raise

    def tell(self, text: str) -> None:
        """Adds a line to the event log; one that cannot be written is lost."""
        with suppress(OSError):
            self.journal.tell(self.attempt.phase or "stage", self.masked(text))

    def end(self, outcome: str, error: str = "") -> None:
        """Closes the record; on a full disk it takes the room that was kept for that."""
        self.attempt.outcome, self.attempt.error = outcome, self.masked(error)
        try:
            self.journal.save(self.attempt)
        except OSError:
            self.journal.store.spend_reserve()
            self.save()

    def masked(self, text: str) -> str:
        """A text without the secrets of both models, which a server may give back in an error."""
        previous = self.journal.previous()
        digests = {self.attempt.env_digest, previous.env_digest if previous else ""}
        for digest in digests - {""}:
            text = environment.mask(self.journal.store.find(digest), text)
        return text

    def save(self) -> None:
        """Writes the record as it is now; a full disk does not end a way back."""
        try:
            self.journal.save(self.attempt)
        except OSError:
            if UNDO not in self.attempt.begun:
                raise
