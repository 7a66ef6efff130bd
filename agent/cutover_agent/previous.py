"""What a cutover goes back to when it fails."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Optional

from . import strangers, systemd
from .checks import Refused
from .order import Order
from .processes import read_processes
from .release_plan import ReleasePlan, Tree
from .store import Serving, Store
from .strangers import Kept, Server


@dataclass(frozen=True)
class Way:
    """A way back, or none; nothing on the host is changed by finding it."""

    sentence: str
    serving: Optional[Serving] = None
    texts: tuple[str, ...] = ()
    """What has to be kept in the store for it."""
    refused: bool = False
    """Whether there should be one, and is none."""


def way_back(store: Store, order: Order, plan: ReleasePlan) -> tuple[Optional[Serving], str]:
    """The way back, and a sentence about it; Refused where there should be one and is none."""
    way = find(store, order, plan)
    if way.refused:
        raise Refused(way.sentence)
    for text in way.texts:
        store.keep(text)
    return way.serving, way.sentence


def find(store: Store, order: Order, plan: ReleasePlan) -> Way:
    """What served before: a deployment of ours, a unit of somebody else, or a process."""
    committed = store.serving()
    if committed and not systemd.state(committed.order.unit).down:
        return Way(f"{committed.order.deployment} is the way back", committed)
    servers = [one for one in _candidates(plan) if one]
    if not servers and committed:
        who = f"{committed.order.deployment}, which does not run,"
        return Way(f"{who} is the way back", committed)
    if not servers:
        return Way("there is no way back: nothing serves here now")
    by_hand, units = _apart(servers)
    if len(by_hand) > 1:
        return _none(by_hand, order, "more than one serves")
    first, *also = by_hand + units
    kept = _kept(order, first, plan)
    if kept is None:
        return _none(by_hand, order, "its environment cannot be read")
    sentence = f"{first.name}, {kept.how}" + "".join(
        f"; {one.name} is started again as it is" for one in also
    )
    return Way(sentence, kept.serving, kept.texts)


def _apart(servers: Iterable[Server]) -> tuple[list[Server], list[Server]]:
    """Those that were started by hand, and units: these all start again, whoever is asked."""
    found = list(servers)
    return [one for one in found if not one.unit], [one for one in found if one.unit]


def _candidates(plan: ReleasePlan) -> Iterable[Optional[Server]]:
    """Everything outside of our units that a release ends and that answers as a model server."""
    yield from map(strangers.ask, plan.end)
    processes = read_processes() if plan.aside else {}
    for unit in plan.aside:
        members = tuple(p for p in processes.values() if p.unit == unit)
        main = processes.get(systemd.state(unit).main_pid)
        if main:
            yield strangers.ask(Tree(main, members), unit)


def _kept(order: Order, server: Server, plan: ReleasePlan) -> Optional[Kept]:
    pids = {process.pid for process in server.tree.members}
    holders = [v.holder for v in plan.verdicts if v.holder.process.pid in pids]
    gpus = {index for holder in holders for index in (holder.shares or holder.gpus)}
    as_it_is = strangers.unit_as_it_is if server.unit else strangers.as_unit
    return as_it_is(order, server, tuple(sorted(gpus)))


def _none(servers: Iterable[Server], order: Order, why: str) -> Way:
    who = ", ".join(server.name for server in servers)
    if order.accept_no_rollback:
        return Way(f"there is no way back to {who} ({why}), as accept_no_rollback allows")
    return Way(
        f"there would be no way back to {who}: {why}: end it yourself, or set "
        "`accept_no_rollback: true` for this host",
        refused=True,
    )
