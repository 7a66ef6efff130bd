"""The one verb: bring the host to where an order wants it, up to a named point."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Optional

from . import install, launch, lock
from .adopt import adopt
from .attempt import Attempt, Journal, latest, new_id, owner
from .bound import bound
from .checks import Refused, check
from .clock import Deadline, now, wait_for
from .follow import Failed, await_end, follow, result, say
from .history import make_room
from .nvidia_smi import read_gpus
from .order import Order
from .previous import way_back
from .serving import is_healthy, is_right, key_of, why_again
from .store import Store

SAME_RUN_SECONDS = 60
"""A failure is told once, to the step of the `up` that caused it. The steps of one `up` follow each
other within seconds; a step that comes later than this belongs to the next one, which tries again.
So does every `up` that begins with `stage`. One that does not (Pulumi had finished it, died, and
runs again within this time with facts switched off) still tells the failure first.
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
    """Seconds since a step reported success of a part of that transaction, if no other step came
    after it; else since boot."""


def decide(order: Order, until: str, seen: Situation) -> str:
    """What a step does: ``join``, ``busy``, ``recover``, ``fail``, ``pass``, ``stage`` or
    ``start``.
    """
    last = seen.last
    if last and seen.live:
        return "join" if last.order == order.digest else "busy"
    if last and not last.outcome:
        return "recover"
    here = last if last and last.order == order.digest else None
    same_run = until != "staged" and 0 <= seen.since_step < SAME_RUN_SECONDS
    if here and here.failed and not here.told and same_run:
        return "fail"
    if seen.right and seen.healthy:
        # A fast model serves before the later steps of its `up` have come. What they have to tell,
        # warnings too, is told all the same.
        return "join" if here and here.outcome == "serving" and same_run else "pass"
    return "stage" if until == "staged" else "start"


def converge(store: Store, order: Order, until: str) -> dict[str, Any]:
    """Carries an order out up to `until`, and returns the step's receipt and evidence.

    A step first completes whatever comes before it. Raises Failed, Refused or OrderError.
    """
    with lock.held("converge"):
        if until == "staged":
            _refuse_others(store, order)
            adopt(store, order)
        action, last = _decide(store, order, until)
        if action in ("stage", "start"):
            store.name_unit(order.deployment, order.unit)
        if action == "stage":
            _tell_untold(store)
            return stage(store, order)
        if action == "pass":
            return passed(store, order)
        if action == "busy":
            assert last
            raise Failed(
                f"{order.host}: {last.describe()}: "
                "wait for its end (`cutover log`), then run `pulumi up` again"
            )
        if action == "start":
            env_digest = store.put_digest("env", order.deployment)
            store.set_staged(order)  # somebody else may have staged another one meanwhile
            journal: Optional[Journal] = start(store, order, env_digest, owner())
        else:
            journal = latest(store)
    assert journal
    return follow(journal, until, whole=action == "start")


def _refuse_others(store: Store, order: Order) -> None:
    """A file that an inactive deployment may not write is told before anything is stopped."""
    reasons = install.refusals(store, store.units() - {order.unit})
    if reasons:
        raise Refused("\n".join(reasons))


def _decide(store: Store, order: Order, until: str) -> tuple[str, Optional[Attempt]]:
    """What to do now, once what broke off before is finished."""
    seen = look(store, order)
    action = decide(order, until, seen)
    if action != "recover":
        return action, seen.last
    assert seen.last
    say(f"{order.host}: {seen.last.describe()}, but it broke off: finishing it first")
    launch.recovery()
    await_end(Journal(store, seen.last.id))
    seen = look(store, order)
    return decide(order, until, seen), seen.last


def look(store: Store, order: Order) -> Situation:
    """Reads the situation of a step on this host."""
    journal = latest(store)
    last = journal.load() if journal else None
    live = bool(last and not last.outcome and lock.is_held("cutover"))
    env_digest = store.put_digest("env", order.deployment)
    right = not live and is_right(order, env_digest, store.serving())
    healthy = right and is_healthy(order, key_of(store, order, env_digest))
    since_step = now() - journal.last_step() if journal else now()
    return Situation(last, live, right, healthy, since_step)


def stage(store: Store, order: Order) -> dict[str, Any]:
    """Checks everything while the old model serves, and leaves the order on the host."""
    plan = check(store, order)
    serving, back = way_back(store, order, plan)
    say(f"{serving.order.deployment if serving else 'nothing'} -> {order.deployment}")
    again = why_again(order, store.put_digest("env", order.deployment), store.serving())
    for line in filter(None, (*plan.summary(), again, back)):
        say(line)
    asked = now()
    read_gpus()
    promised = bound(order, serving.order if serving else None, now() - asked)
    say(promised.describe())
    store.set_staged(order)
    return {"receipt": new_id(), "deployment": order.deployment, "bound": promised.seconds}


def _tell_untold(store: Store) -> None:
    """A new run begins, so that its later steps try again, whatever the last one did not hear."""
    journal = latest(store)
    last = journal.load() if journal else None
    if journal and last and last.failed and not last.told:
        reason = last.error.partition("\n")[0]
        say(f"the last cutover to {last.deployment} failed when nobody listened: {reason}")
        last.told = True
        journal.save(last)


def passed(store: Store, order: Order) -> dict[str, Any]:
    """The right model serves and is healthy: nothing to do but to give that transaction's proof."""
    serving = store.serving()
    assert serving
    if serving.order != order:
        store.set_serving(dataclasses.replace(serving, order=order))
    store.set_staged(order)
    say(f"{order.deployment} serves already, verified and healthy")
    return result(serving.transaction, order.deployment, serving.evidence)


def start(store: Store, order: Order, env_digest: str, owner: str) -> Journal:
    """Starts the transient unit that carries the whole order out, whoever goes away meanwhile."""
    make_room(store)
    journal = Journal(store, new_id())
    journal.create(order, env_digest, owner)
    serving = store.serving()
    models = {order.unit, serving.order.unit} if serving else {order.unit}
    unit = launch.transaction(journal.name, order.deployment, sorted(models))

    def begun() -> bool:
        attempt = journal.load()
        return lock.is_held("cutover") or bool(attempt and attempt.outcome)

    if not wait_for(begun, Deadline(START_SECONDS)):
        raise Failed(
            f"{order.host}: {unit} did not start within {START_SECONDS} s: see its journal"
        )
    return journal
