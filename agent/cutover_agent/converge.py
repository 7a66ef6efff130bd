"""The one verb: bring the host to where an order wants it, up to a named point."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any, Optional

from . import lock
from .adopt import adopt
from .attempt import Attempt, Journal, latest, new_id
from .checks import check
from .clock import Deadline, boot_id, now, wait_for
from .follow import Failed, follow, result, say
from .order import Order
from .serving import is_healthy, is_right, key_of
from .store import Store

SAME_RUN_SECONDS = 60
"""A failure is told once, to the step of the `up` that caused it. The steps of one `up` follow each
other within seconds; a step that comes later than this belongs to the next one, which tries again.
"""

START_SECONDS = 30


@dataclass(frozen=True)
class Situation:
    """What a step finds when it arrives."""

    last: Optional[Attempt]
    """The newest transaction of the host."""
    live: bool
    """Whether that transaction's process is running."""
    right: bool
    """Whether what was committed last is what the order asks for."""
    healthy: bool
    """Whether it answers now."""
    since_step: float
    """Seconds since a step last reported success of a part of that transaction."""


def decide(order: Order, until: str, seen: Situation) -> str:
    """What a step does: ``join``, ``busy``, ``fail``, ``pass``, ``stage`` or ``start``."""
    last = seen.last
    if last and seen.live:
        return "join" if last.order == order.digest else "busy"
    failed_here = last and last.order == order.digest and last.failed and not last.told
    if failed_here and until != "staged" and seen.since_step < SAME_RUN_SECONDS:
        return "fail"
    if seen.right and seen.healthy:
        return "pass"
    return "stage" if until == "staged" else "start"


def converge(store: Store, order: Order, until: str) -> dict[str, Any]:
    """Carries an order out up to `until`, and returns the step's receipt and evidence.

    A step first completes whatever comes before it. Raises Failed, Refused or OrderError.
    """
    with lock.held("converge"):
        if until == "staged":
            adopt(store, order)
        seen = look(store, order)
        action = decide(order, until, seen)
        if action == "stage":
            return stage(store, order)
        if action == "pass":
            return passed(store, order)
        if action == "busy":
            assert seen.last
            raise Failed(
                f"{order.host}: a cutover to {seen.last.deployment} is under way: "
                "wait for its end (`cutover log`), then run `pulumi up` again"
            )
        if action == "start":
            start(store, order)
    journal = latest(store)
    assert journal
    return follow(journal, until, whole=action == "start")


def look(store: Store, order: Order) -> Situation:
    """Reads the situation of a step on this host."""
    journal = latest(store)
    last = journal.load() if journal else None
    live = bool(last and not last.outcome and last.boot == boot_id() and lock.is_held("cutover"))
    env_digest = store.put_digest("env", order.deployment)
    right = not live and is_right(order, env_digest, store.serving())
    healthy = right and is_healthy(order, key_of(store, order, env_digest))
    since_step = now() - journal.last_step() if journal else 0.0
    return Situation(last, live, right, healthy, since_step)


def stage(store: Store, order: Order) -> dict[str, Any]:
    """Checks everything while the old model serves, and leaves the order on the host."""
    plan = check(store, order)
    serving = store.serving()
    say(f"{serving.order.deployment if serving else 'nothing'} -> {order.deployment}")
    for line in plan.summary():
        say(line)
    back = f"{serving.order.deployment} is the way back" if serving else "there is no way back"
    say(f"{back} if {order.deployment} does not serve")
    store.set_staged(order)
    return {"receipt": new_id(), "deployment": order.deployment}


def passed(store: Store, order: Order) -> dict[str, Any]:
    """The right model serves and is healthy: nothing to do but to give that transaction's proof."""
    serving = store.serving()
    assert serving
    if serving.order != order:
        store.set_serving(dataclasses.replace(serving, order=order))
    store.set_staged(order)
    say(f"{order.deployment} serves already, verified and healthy")
    return result(serving.transaction, order.deployment, serving.evidence)


def start(store: Store, order: Order) -> None:
    """Starts the transient unit that carries the whole order out, whoever goes away meanwhile."""
    journal = Journal(store, new_id())
    journal.create(order)
    unit = f"cutover-{journal.name}"
    subprocess.run(
        [
            "systemd-run",
            "--collect",
            "--quiet",
            f"--unit={unit}",
            f"--description=cutover to {order.deployment}",
            "--property=Type=exec",
            "--property=OOMScoreAdjust=-1000",
            sys.executable,
            "-I",
            os.path.realpath(sys.argv[0]),
            "transaction",
            journal.name,
        ],
        stdin=subprocess.DEVNULL,
        check=True,
    )

    def begun() -> bool:
        attempt = journal.load()
        return lock.is_held("cutover") or bool(attempt and attempt.outcome)

    if not wait_for(begun, Deadline(START_SECONDS)):
        raise Failed(
            f"{order.host}: {unit} did not start within {START_SECONDS} s: see its journal"
        )
