"""Joins a transaction: shows what it does, and ends as the step's part of it did."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import Any

from . import lock
from .attempt import PHASES, UNTIL, Attempt, Journal
from .clock import POLL_SECONDS, Deadline
from .mask import hide
from .order import Order

HEARTBEAT_SECONDS = 10
MOST_CHARACTERS = 4096
RECOVERY_SECONDS = 30
"""How long recovery may take to begin after the agent died."""


class Failed(RuntimeError):
    """The step failed; the text says what, what serves now, and what to do next."""


def follow(journal: Journal, until: str, whole: bool) -> dict[str, Any]:
    """Shows a transaction's events until the step's part of it is over."""
    others = set(PHASES) - set(_phases_of(until, whole))
    shown = 0
    quiet = Deadline(HEARTBEAT_SECONDS)
    orphaned = Deadline(RECOVERY_SECONDS)
    journal.forget_step()
    while True:
        # Taken before the state is read: if the process ends in between, its outcome is there.
        alive = lock.is_held("cutover")
        attempt = journal.load()
        assert attempt
        events = journal.events()
        for event in events[shown:]:
            if event["phase"] not in others:
                say(f"{event['phase']}: {event['text']}")
                quiet = Deadline(HEARTBEAT_SECONDS)
        shown = len(events)
        if attempt.failed:
            attempt.told = True
            with suppress(OSError):  # on a full disk the next step tells it once more
                journal.save(attempt)
            raise Failed(explain(journal.order(), attempt))
        if attempt.reached(until):
            if until != "serving":  # the last one; there is nothing left to tell
                journal.note_step()
            return result(attempt.id, attempt.deployment, attempt.evidence)
        if alive:
            orphaned = Deadline(RECOVERY_SECONDS)
        elif not attempt.outcome and orphaned.passed:
            raise Failed(broken_off(journal.order().host, attempt))
        if quiet.passed:
            say(f"{attempt.deployment}: still at it")
            quiet = Deadline(HEARTBEAT_SECONDS)
        time.sleep(POLL_SECONDS)


def await_end(journal: Journal) -> Attempt:
    """Waits until a transaction that broke off is finished by recovery; raises Failed if not."""
    orphaned, quiet = Deadline(RECOVERY_SECONDS), Deadline(HEARTBEAT_SECONDS)
    while True:
        alive = lock.is_held("cutover")
        attempt = journal.load()
        assert attempt
        if attempt.outcome:
            return attempt
        if alive:
            orphaned = Deadline(RECOVERY_SECONDS)
        elif orphaned.passed:
            raise Failed(broken_off(journal.order().host, attempt))
        if quiet.passed:
            say(f"{attempt.deployment}: still at it, in {attempt.phase}")
            quiet = Deadline(HEARTBEAT_SECONDS)
        time.sleep(POLL_SECONDS)


def broken_off(host: str, attempt: Attempt) -> str:
    """What to do about a transaction that nobody carries on."""
    return (
        f"{host}: the cutover to {attempt.deployment} broke off in {attempt.phase or 'its start'} "
        "and nothing finishes it: see `journalctl -u cutover-recover` on the host, "
        "then run `pulumi up` again"
    )


def explain(order: Order, attempt: Attempt) -> str:
    """What failed and why, what serves now and what to do next, a line each."""
    error = attempt.error
    if len(error) > MOST_CHARACTERS:
        error = f"{error[:MOST_CHARACTERS]} ... (cut: `cutover log` on the host has it all)"
    lines = [f"{order.host}: {order.deployment} does not serve: {error}"]
    back = attempt.evidence.get("back")
    if attempt.outcome in ("refused", "broken-off"):
        lines.append(f"{order.host}: nothing was stopped or changed")
    elif back:
        lines.append(
            f"{order.host}: {back['deployment']} serves again, verified "
            f"({back['answer'].strip()[:40]!r}, {back['tokens_per_second']} tokens/s)"
        )
    else:
        lines.append(f"{order.host}: NOTHING SERVES on this host now")
    declared = back and back.get("ours", True)
    other = f", or set `active` to {back['deployment']}" if back and declared else ""
    lines.append(f"{order.host}: next: mend the cause and run `pulumi up` again{other}")
    return "\n".join(lines)


def result(receipt: str, deployment: str, evidence: dict[str, Any]) -> dict[str, Any]:
    """What a step prints on its standard output."""
    return {"receipt": receipt, "deployment": deployment, **evidence}


def say(text: str) -> None:
    """A line for the operator; standard output is kept for the receipt."""
    print(hide(text), file=sys.stderr, flush=True)


def _phases_of(until: str, whole: bool) -> tuple[str, ...]:
    """The phases that a step shows: from the one before it, or all up to its own."""
    last = PHASES.index(UNTIL[until]) + 1
    steps = list(UNTIL)
    position = steps.index(until)
    first = PHASES.index(UNTIL[steps[position - 1]]) + 1 if position > 1 and not whole else 0
    return PHASES[first:last]
