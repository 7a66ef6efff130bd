"""What the program's resources ask of the host besides converging: puts, services, removal."""

from __future__ import annotations

from typing import Any

from . import install, lock, repairs, systemd, views
from .attempt import latest
from .checks import Refused
from .converge import converge, look
from .follow import Failed, await_end, say
from .order import Declared, Order
from .repair import repair
from .store import Record, Store


def put(store: Store, record: Record, text: str, count: int = 0) -> dict[str, Any]:
    """Stores a text for its owner; nothing that runs is touched.

    With a count of repairs, what drifted on the host is undone first.
    """
    with lock.held("converge"):
        kept = Record(record.owner, record.kind, record.deployment, record.unit, store.keep(text))
        store.own(kept)
        if count:
            for line in repair(store, kept):
                say(line)
        repairs.note(store, repairs.root_of(record.kind, record.deployment), count)
    return {"receipt": store.receipt(kept.digest)}


def service(store: Store, owner: str, declared: Declared) -> dict[str, Any]:
    """Makes one unit enabled and running, or not, as declared; the host serves what it shall.

    Raises Failed when the model that the host shall serve does not answer in the end.
    """
    with lock.held("converge"):
        store.own(Record(owner, "service", declared.deployment, declared.unit))
        store.name_unit(declared.deployment, declared.unit)
        if not declared.enabled:
            _stand_by(store, declared)
            _clear(store)  # the file of another name that its unit had before
    order = _order_for(store, declared.serves)
    if not _answers(store, order):
        converge(store, order, "serving")
    if declared.enabled and systemd.state(declared.unit).enabled != "enabled":
        systemd.call("enable", declared.unit)
        say(f"{declared.unit} was not enabled: enabled again")
    state = "enabled and running" if declared.enabled else "installed, not enabled"
    say(f"{declared.unit} is {state}; {declared.serves} serves")
    return {"deployment": declared.deployment, "enabled": declared.enabled}


def _stand_by(store: Store, declared: Declared) -> None:
    """Installs a unit that shall not run; its file is never replaced while it does."""
    unit = declared.unit
    state = systemd.state(unit)
    if not state.down:
        raise Failed(
            f"{unit} is {state.active}, but {declared.serves} is declared to serve: "
            f"run `systemctl stop {unit}` on the host, then `pulumi up` again"
        )
    reason = install.refusal(store, unit)
    if reason:
        raise Refused(reason)
    env_digest = store.put_digest("env", declared.deployment)
    install.install(store, declared.deployment, unit, declared.unit_digest, env_digest)
    if state.enabled == "enabled":
        systemd.call("disable", unit)


def _order_for(store: Store, deployment: str) -> Order:
    order = store.staged()
    if order is None or order.deployment != deployment:
        raise Failed(f"{deployment} is declared to serve, but was never staged: run `pulumi up`")
    return order


def _answers(store: Store, order: Order) -> bool:
    seen = look(store, order)
    return seen.right and seen.healthy


def drop(store: Store, owner: str) -> None:
    """Gives up what a deleted resource owned; what serves keeps serving.

    A unit that serves stays until another model serves or the agent itself leaves the host.
    """
    with lock.held("converge"):
        record = store.owned_by(owner)
        if record is None:
            return
        store.disown(owner)
        repairs.note(store, repairs.root_of(record.kind, record.deployment), None)
        _clear(store)


def _clear(store: Store) -> None:
    """Removes files and texts that nobody owns any more."""
    journal = latest(store)
    attempt = journal.load() if journal else None
    if attempt and not attempt.outcome:
        return  # its end does the rest, and its way back needs what is there
    for line in install.retire_orphans(store):
        say(line)
    store.forget_texts()


def leave(store: Store, owner: str, keep: bool = False) -> bool:
    """The last resource goes: stop what serves and remove every file of ours but the agent.

    With `keep` the unit that serves stays as it is, files and enablement included.

    Does nothing, and gives False, while another resource still owns something here: then the
    agent is merely being replaced.
    """
    if store.records():
        say(f"{owner}: other resources of this host are still there, so nothing is removed")
        return False
    journal = latest(store)
    if journal and lock.is_held("cutover"):
        say(f"{owner}: a cutover is under way: waiting for its end")
        await_end(journal)
    serving = store.serving()
    seconds = serving.order.deadlines.stop if serving else 120
    for unit in sorted(store.units()):
        if keep and serving and unit == serving.order.unit:
            say(f"{unit} stays, and runs on without the agent")
        elif not systemd.state(unit).down:
            say(f"stopping {unit}")
            systemd.stop(unit, seconds)
    for line in install.retire_orphans(store):
        say(line)
    views.retire(())
    return True
