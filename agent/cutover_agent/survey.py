"""Looks at the host: the facts from which a release is planned."""

from __future__ import annotations

import os
import pwd
from typing import Optional

from . import containers, install
from .devices import Devices, scan
from .engines import is_engine
from .gpus import Reading, Row
from .holders import Landscape, Service, find_holders, unseen
from .nvidia_smi import read_gpus, read_rows
from .order import Order
from .policy import Rules
from .processes import Process, ancestors, read_processes
from .release_plan import ReleasePlan, plan_release
from .scope import Scope
from .services import read_services
from .store import Store


def survey() -> Landscape:
    """The host as a release sees it."""
    return look(read_gpus(), read_rows(), read_services())


def look(
    reading: Reading, rows: Optional[tuple[Row, ...]], services: dict[str, Service]
) -> Landscape:
    """Brings the three views together; looks deeper where they leave memory unexplained."""
    processes = read_processes()
    suspects = {pid for pid, process in processes.items() if is_engine(process)}
    suspects |= {row.pid for row in rows or ()}
    seen = _landscape(processes, scan(processes, suspects), rows, reading, services)
    if not unseen(seen):
        return seen
    return _landscape(processes, scan(processes, processes), rows, reading, services)


def look_again(seen: Landscape) -> Landscape:
    """The same host a moment later: processes and their devices anew, nvidia-smi not asked."""
    processes = read_processes()
    suspects = {pid for pid, process in processes.items() if is_engine(process)}
    unknown = Reading(seen.reading.gpus, "not asked again")
    return _landscape(processes, scan(processes, suspects), None, unknown, dict(seen.services))


def _landscape(
    processes: dict[int, Process],
    opened: dict[int, Devices],
    rows: Optional[tuple[Row, ...]],
    reading: Reading,
    services: dict[str, Service],
) -> Landscape:
    return Landscape(processes, find_holders(processes, opened, rows, reading), reading, services)


def plan_for(store: Store, order: Order, scope: Scope, seen: Landscape) -> ReleasePlan:
    """What a release for this order would do now."""
    return plan_release(seen, rules_for(store, order, scope, seen))


def rules_for(store: Store, order: Order, scope: Scope, seen: Landscape) -> Rules:
    """What the order and the host's settings say about whom to end."""
    named = store.units() | {order.unit}
    theirs = frozenset(unit for unit in named if install.by_hand(store, unit))
    ours = named - theirs
    me = seen.processes.get(os.getpid())
    login = {me.pid, *(p.pid for p in ancestors(me, seen.processes))} if me else set()
    return Rules(
        gpus=scope.indices,
        ours=ours,
        running=running_units(ours, seen),
        by_hand=running_units(theirs, seen),
        policy=order.policy,
        users=users_of(ours, seen),
        also_end=frozenset(order.also_end) | containers.ids_of(order.also_end),
        companions=order.companions,
        login=frozenset(login),
    )


def running_units(units: frozenset[str], seen: Landscape) -> frozenset[str]:
    """Those of them that run; a unit that systemd has not loaded does not."""
    return frozenset(u for u in units if u in seen.services and seen.services[u].runs)


def users_of(units: frozenset[str], seen: Landscape) -> frozenset[str]:
    """Whom the units run as."""
    services = [seen.services[unit] for unit in units if unit in seen.services]
    return frozenset({service.user for service in services} or {"root"})


def uids_of(store: Store, plan: ReleasePlan, seen: Landscape) -> frozenset[int]:
    """Whose leftovers may be swept: the users of what a release ends, and of our units."""
    units = set(plan.units) | store.units()
    uids = {process.uid for tree in plan.end for process in tree.members}
    uids |= {p.uid for p in seen.processes.values() if p.unit and p.unit in plan.units}
    return frozenset(uids | {uid_of(seen.services[u].user) for u in units if u in seen.services})


def uid_of(user: str) -> int:
    """A user's number; root's where there is no such user."""
    try:
        return int(user) if user.isdigit() else pwd.getpwnam(user).pw_uid
    except KeyError:
        return 0
