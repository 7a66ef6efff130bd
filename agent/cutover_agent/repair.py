"""Undoes what somebody changed on the host; what they wrote is saved first."""

from __future__ import annotations

import dataclasses
import difflib
import os
import shutil
import time
from pathlib import Path

from . import install, key_file, systemd
from .files import file_digest, remove, write_atomic
from .manifest import (
    AS_WRITTEN,
    EDITED,
    NOT_WRITTEN,
    changed_before_start,
    drop_ins,
    late_drop_ins,
    loaded,
    paths_of,
    state_of,
)
from .mask import hide
from .store import Record, Store

SHOWN_LINES = 6
BLANKS = " \t\\"
"""Around a line of a unit, the backslash that continues it included."""


def repair(store: Store, record: Record) -> list[str]:
    """Brings a put's file, drop-ins and enablement back; says what it did, a line each.

    No process is touched. One that was started with the changes is marked, so that `stage` starts
    the model anew.
    """
    extra = late_drop_ins(store, record.unit) if record.kind == "unit" else []
    states = {path: state_of(store, path) for path in paths_of(record)}
    wrong = [path for path, state in states.items() if state not in (AS_WRITTEN, NOT_WRITTEN)]
    _mark_stale(store, record.unit, [*(p for p in wrong if states[p] == EDITED), *extra])
    lines = [take_away(store, record.unit, each) for each in extra]
    lines += [_restore(store, each) for each in wrong]
    if key_file.path(record.deployment) in wrong:
        unit_digest = store.installed()[str(install.UNITS / record.unit)]
        key_file.give_to_user(store, record.deployment, unit_digest)
    if lines:
        systemd.call("daemon-reload")
    if record.kind == "unit":
        lines += _enable_as_committed(store, record.unit)
    return lines


def shown(path: Path) -> str:
    """A drop-in for people: where it is, and its first lines without secrets."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    told = [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]
    return f"{path}: {_first(told)}"


def changes(store: Store, unit: str) -> str:
    """What somebody changed in a unit of ours: its first lines without secrets, else empty."""
    path = install.UNITS / unit
    if state_of(store, path) != EDITED or not path.is_file():
        return ""
    was = store.find(store.installed()[str(path)]).splitlines()
    now = path.read_text(encoding="utf-8", errors="replace").splitlines()
    found = list(difflib.unified_diff(was, now, n=0, lineterm=""))[2:]
    return _first([f"{line[0]} {line[1:].strip(BLANKS)}" for line in found if line[0] in "+-"])


def _first(lines: list[str]) -> str:
    rest = " ..." if len(lines) > SHOWN_LINES else ""
    return f"{hide(' '.join(lines[:SHOWN_LINES]))[:300]}{rest}"


def _mark_stale(store: Store, unit: str, changed: list[Path]) -> None:
    serving = store.serving()
    if serving is None or serving.order.unit != unit or not changed:
        return
    if changed_before_start(loaded([unit])[unit], changed):
        store.set_serving(dataclasses.replace(serving, stale=True))


def take_over(store: Store, unit: str) -> list[str]:
    """Saves a unit that somebody else wrote, its drop-ins too: it is ours to replace from now on.

    Returns what it did, a line each; the unit's file itself stays as it is.
    """
    path = install.UNITS / unit
    saved = _save(store, path, unit)
    lines = [take_away(store, unit, each) for each in drop_ins(unit)]
    store.note_installed(path, file_digest(path) or "")
    return [f"{path}, written by hand, is saved as {saved}", *lines]


def take_away(store: Store, unit: str, path: Path) -> str:
    """Saves a drop-in and removes it; says so."""
    line = f"drop-in {shown(path)}"
    saved = _save(store, path, f"{unit}.{path.name}")
    remove(path)
    if not os.listdir(path.parent):
        path.parent.rmdir()
    return f"{line}: removed, saved as {saved}"


def _restore(store: Store, path: Path) -> str:
    edited = path.is_file() and state_of(store, path) == EDITED
    saved = _save(store, path, path.name) if edited else None
    mode = 0o644 if path.parent == install.UNITS else 0o600
    write_atomic(path, store.text(store.installed()[str(path)]), mode)
    return f"{path} is as it was{f', the edited one is saved as {saved}' if saved else ''}"


def _save(store: Store, path: Path, name: str) -> Path:
    """Copies bytes as they are: what was edited by hand need not be text."""
    copy = store.root / "saved" / f"{name}.{time.strftime('%Y%m%dT%H%M%S')}"
    descriptor = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(path, "rb") as source, open(descriptor, "wb") as target:
        shutil.copyfileobj(source, target)
    return copy


def _enable_as_committed(store: Store, unit: str) -> list[str]:
    serving = store.serving()
    if serving is None:
        return []
    enabled = loaded([unit])[unit].enabled == "enabled"
    if enabled == (serving.order.unit == unit) or not (install.UNITS / unit).exists():
        return []
    systemd.call("disable" if enabled else "enable", unit)
    return [f"{unit} is {'disabled' if enabled else 'enabled'} again"]
