"""Takes over a unit that somebody wrote by hand, without a restart, where it runs the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from . import environment, install, systemd
from .arguments import command_difference
from .attempt import new_id
from .clock import wall
from .follow import say
from .install import UNITS
from .manifest import changed_after_start, drop_ins, loaded
from .mask import hide
from .order import Order
from .repair import take_over
from .serving import is_healthy, key_of
from .store import Serving, Store
from .unit_text import Service, Unreadable, read_service

POLICY = (
    "CUDA_DEVICE_ORDER",
    "PATH",
    "PYTHONUNBUFFERED",
    "SPT_NOENV",
    "VLLM_ENGINE_READY_TIMEOUT_S",
)
"""Variables that every unit of ours has, whatever its deployment says."""
VISIBLE = "CUDA_VISIBLE_DEVICES"
MOST_PENDING = 12
_COMPARED = ("ExecStart", "User", "WorkingDirectory", "EnvironmentFile", "Description")


@dataclass(frozen=True)
class Comparison:
    """A unit that is there, against the one that shall be."""

    differences: tuple[str, ...]
    """Why it cannot be taken over as it runs, a sentence part each."""
    pending: tuple[str, ...]
    """What ours says beyond it; in force from the next start on."""


def compare(store: Store, order: Order, text: str, secrets: str) -> Optional[Comparison]:
    """Compares a hand-written unit that runs; None where there is none.

    `secrets` is the text of the deployment's environment file; empty leaves them out.
    """
    unit, path = order.unit, UNITS / order.unit
    if path.is_symlink() or not path.is_file() or str(path) in store.installed():
        return None
    state = loaded([unit])[unit]
    if state.down:
        return None
    if state.outdated or changed_after_start(state, [path, *drop_ins(unit)]):
        return Comparison(("its file was changed after it was started",), ())
    try:
        theirs = read_service(systemd.call("cat", unit))
        ours, values = read_service(text), _values(secrets)
        return Comparison(
            tuple(differences(ours, _with_files(theirs), declared(order, ours) | values)),
            tuple(pending(ours, theirs)),
        )
    except (Unreadable, OSError) as problem:
        return Comparison((str(problem),), ())


def declared(order: Order, ours: Service) -> dict[str, str]:
    """Variables of the catalogue, and those that say which GPUs are seen, where that is not all."""
    fills = len(order.gpus) == order.host_gpus
    seen = {} if fills else {k: v for k, v in ours.variables.items() if k == VISIBLE}
    return {**seen, **order.environment}


def differences(ours: Service, theirs: Service, variables: Mapping[str, str]) -> list[str]:
    """Where the running process is not what the catalogue declares; no value of a variable.

    `variables` are those that have to be alike, secrets included.
    """
    found = []
    command = command_difference(ours.argv, theirs.argv)
    if command:
        found.append(f"command: {hide(command)}")
    if ours.user != theirs.user:
        found.append(f"user: {theirs.user}, declared {ours.user}")
    if ours.folder != theirs.folder:
        found.append(f"folder: {theirs.folder}, declared {ours.folder}")
    for name, value in variables.items():
        if theirs.variables.get(name) != value:
            there = "another value" if name in theirs.variables else "not set"
            found.append(f"variable {name}: {there}")
    return found


def pending(ours: Service, theirs: Service) -> list[str]:
    """Lines of ours that the other one does not have."""
    found = [
        f"{name}={hide(value)}"
        for name, values in ours.lines.items()
        if name not in _COMPARED
        for value in values
        if value not in theirs.lines.get(name, [])
        and not (name == "Environment" and _set_alike(value, theirs))
    ]
    more = len(found) - MOST_PENDING
    return found[:MOST_PENDING] + ([f"{more} more lines"] if more > 0 else [])


def adopt(store: Store, order: Order) -> bool:
    """Makes a hand-written unit that serves what is ordered one of ours; its process stays."""
    if store.serving() is not None:
        return False
    env_digest = store.put_digest("env", order.deployment)
    text = store.text(order.unit_digest)
    found = compare(store, order, text, store.text(env_digest))
    if found is None:
        return False
    if found.differences:
        say(f"{order.unit} was written by hand and differs: {'; '.join(found.differences)}")
        return False
    if not is_healthy(order, key_of(store, order, env_digest)):
        return False
    _take_over(store, order, env_digest)
    say(f"{order.unit} was written by hand and runs the same: taken over, its process stays")
    if found.pending:
        say(f"pending until its next start: {', '.join(found.pending)}")
    return True


def _take_over(store: Store, order: Order, env_digest: str) -> None:
    for line in take_over(store, order.unit):
        say(line)
    install.install(store, order.deployment, order.unit, order.unit_digest, env_digest)
    systemd.call("enable", order.unit)
    evidence = {"adopted": True, "gate": {"line": "not passed: the unit was taken over running"}}
    store.set_serving(Serving(order, env_digest, new_id(), wall(), evidence))


def _with_files(service: Service) -> Service:
    variables = dict(service.variables)
    for name in service.files:
        variables.update(_values(Path(name).read_text(encoding="utf-8")))
    return Service(service.argv, service.user, service.folder, variables, (), service.lines)


def _values(text: str) -> dict[str, str]:
    """The variables of an environment file."""
    names = [line.partition("=")[0].strip() for line in text.split("\n") if "=" in line]
    found = {name: environment.value(text, name) for name in names if not name.startswith("#")}
    return {name: value for name, value in found.items() if value is not None}


def _set_alike(line: str, theirs: Service) -> bool:
    name, _, value = line.strip("\"'").partition("=")
    return theirs.variables.get(name) == value
