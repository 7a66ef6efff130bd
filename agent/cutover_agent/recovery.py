"""Finishes a transaction that broke off: one path, at boot and when its process dies."""

from __future__ import annotations

from typing import Optional

from . import lock, systemd
from .attempt import UNDO, Attempt, Journal, latest
from .clock import boot_id
from .phases import Phases
from .progress import Progress
from .store import Store
from .transaction import Transaction

UNIT = "cutover-recover.service"
TEXT = """\
# Written by cutover: finishes a cutover that the agent or the host did not survive.
[Unit]
Description=Finish a cutover that broke off
ConditionPathExists=/usr/local/bin/cutover

[Service]
# Counts as started at once: the boot does not wait for a model that loads.
Type=exec
ExecStart=/usr/local/bin/cutover recover
Restart=on-failure
RestartSec=1
OOMScoreAdjust=-1000

[Install]
WantedBy=multi-user.target
"""


def decide(attempt: Optional[Attempt], boot: str, runs: bool) -> str:
    """What is left to do: ``nothing``, ``close``, ``go on`` or ``go back``.

    `runs` says whether the new unit is neither inactive nor failed.
    """
    if attempt is None or attempt.outcome:
        return "nothing"
    if UNDO in attempt.begun:
        return "go back"
    if "release" not in attempt.begun:
        # Nothing was stopped; but a boot has stopped everything.
        return "close" if attempt.boot == boot else "go back"
    loads = "start" in attempt.begun and runs and attempt.boot == boot
    # What has come to its commit was verified, and may be started again after a boot.
    return "go on" if loads or "commit" in attempt.begun else "go back"


def recover(store: Store) -> str:
    """Finishes the newest transaction if it is open; returns what that took, in a word or two."""
    with lock.held("cutover"):
        journal = latest(store)
        attempt = journal.load() if journal else None
        if journal is None or attempt is None or attempt.outcome:
            return "nothing"
        runs = not systemd.state(journal.order().unit).down
        action = decide(attempt, boot_id(), runs)
        _act(store, journal, attempt, action)
        return action


def _act(store: Store, journal: Journal, attempt: Attempt, action: str) -> None:
    progress = Progress(journal, attempt)
    store.spend_reserve()  # the room is kept for just this
    if "drain" not in attempt.begun and action == "go back" and journal.previous() is None:
        journal.set_previous(store.serving())  # it may not have come that far itself
    if attempt.boot != boot_id():
        # Times of another boot say nothing here.
        attempt.boot, attempt.loading_since = boot_id(), 0.0
        if action == "go on":
            attempt.tries += 1  # a load more than the stated time has room for but once
    progress.save()
    progress.tell(f"broke off in {attempt.phase or 'its start'}: {action}")
    if action == "close":
        if "drain" in attempt.begun:
            Phases(store, progress.tell).after_rollback(journal.order())
        progress.end("broken-off", "it broke off before anything was stopped")
    elif action == "go on":
        Transaction(store, journal, attempt).go_on()
    else:
        Transaction(store, journal, attempt).go_back(f"{attempt.phase}: it broke off there")
