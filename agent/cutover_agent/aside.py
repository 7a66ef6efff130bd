"""Units of others that a release has stopped: kept from coming back, and put back on a roll-back.

What was stopped is written down before it is touched, so that a power cut forgets nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from . import install, systemd
from .files import read_json, remove, write_atomic, write_json
from .holders import Service
from .order import read
from .repair import take_over
from .store import Store

RUNTIME = Path("/run/systemd/system")
_DROP_IN = "90-cutover-keeps-it-stopped.conf"

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Aside:
    """How a unit was before it was stopped."""

    unit: str
    enabled: bool
    again: str
    """``back`` when only a roll-back starts it, ``restart`` for a companion that is started behind
    the gate, ``end`` for one that stays stopped."""


def remember(store: Store, services: Iterable[Service], companions: Mapping[str, str]) -> None:
    """Writes down how these units are now; the first word about a unit stays."""
    known = {one.unit: one for one in remembered(store)}
    for service in services:
        again = companions.get(service.name, "back")
        one = Aside(service.name, service.enabled == "enabled", again)
        known.setdefault(service.name, one)
    _write(store, known.values())


def remembered(store: Store) -> list[Aside]:
    """Units that a release has stopped, of which no commit or roll-back has spoken yet."""
    return [read(Aside, value, "aside.json") for value in read_json(_file(store), [])]


def hold(units: Iterable[str]) -> None:
    """Keeps units from coming back: not at boot, and not by their own Restart=."""
    for unit in units:
        folder = RUNTIME / f"{unit}.d"
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        write_atomic(folder / _DROP_IN, "[Service]\nRestart=no\n", 0o644)
        systemd.call("disable", unit, check=False)
    systemd.call("daemon-reload")


def restart_companions(store: Store, tell: Tell) -> None:
    """Starts the companions again, once the gate is passed; one that fails is only told."""
    for one in remembered(store):
        if one.again == "restart":
            _start(one.unit, tell)


def put_back(store: Store, tell: Tell, start: bool = True) -> bool:
    """Undoes all of it: Restart=, enablement, and what ran runs again; whether there was any."""
    units = remembered(store)
    if not units:
        return False
    _free(units)
    for one in units:
        if one.enabled:
            systemd.call("enable", one.unit, check=False)
        if start:
            _start(one.unit, tell)
    remove(_file(store))
    return True


def keep(store: Store, tell: Tell) -> None:
    """The new model serves: what was stopped for it stays stopped."""
    units = remembered(store)
    if not units:
        return
    _free(units)
    for one in units:
        if one.unit in store.units() and install.by_hand(store, one.unit):
            for line in take_over(store, one.unit):
                tell(line)
        if one.again == "back" and str(install.UNITS / one.unit) not in store.installed():
            tell(f"{one.unit} stays stopped and does not start at boot: it held the GPUs")
    remove(_file(store))


def _free(units: Iterable[Aside]) -> None:
    for one in units:
        folder = RUNTIME / f"{one.unit}.d"
        remove(folder / _DROP_IN)
        if folder.is_dir() and not list(folder.iterdir()):
            folder.rmdir()
    systemd.call("daemon-reload")


def _start(unit: str, tell: Tell) -> None:
    try:
        if systemd.state(unit).down:
            systemd.call("reset-failed", unit, check=False)
            systemd.start(unit)
            tell(f"{unit} is started again")
    except systemd.SystemdError as error:
        tell(f"{unit} is not started again: {error}")


def _write(store: Store, units: Iterable[Aside]) -> None:
    write_json(_file(store), [dataclasses.asdict(one) for one in units])


def _file(store: Store) -> Path:
    return store.root / "aside.json"
