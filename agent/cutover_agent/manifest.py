"""What of ours is on the disk, compared with what the agent wrote there."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from . import environment, install, key_file, systemd
from .files import file_digest
from .install import UNITS
from .store import Record, Store

AS_WRITTEN, EDITED, MISSING, NOT_WRITTEN = "as written", "edited", "missing", "not written"
OPEN = "open"
"""A file of secrets that others than its owner may read."""

OVERRIDES = (UNITS, Path("/etc/systemd/system.control"))
"""Where people and `systemctl set-property` leave drop-ins; /run is for trials and ends there."""


@dataclass(frozen=True)
class Loaded:
    """A unit as systemd has it in memory."""

    active: str
    sub: str
    main_pid: int
    invocation: str
    enabled: str
    started: int
    """Microseconds after boot at which its main process started; 0 where there is none."""
    outdated: bool
    """Whether a file of it was changed after systemd read it."""
    restarts: int = 0
    job: str = "0"

    @property
    def down(self) -> bool:
        """Whether it neither runs nor is about to."""
        return self.active in ("inactive", "failed") and self.job in ("", "0")


_PROPERTIES = (
    "Id,ActiveState,SubState,MainPID,InvocationID,UnitFileState,ExecMainStartTimestampMonotonic,"
    "NeedDaemonReload,NRestarts,Job"
)


def loaded(units: list[str]) -> dict[str, Loaded]:
    """All these units in one question to systemd, in the order asked."""
    if not units:
        return {}
    shown = systemd.call("show", *units, f"--property={_PROPERTIES}", check=False)
    blocks = [
        dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        for block in shown.strip().split("\n\n")
    ]
    return {unit: _loaded(block) for unit, block in zip(units, blocks)}


def _loaded(value: dict[str, str]) -> Loaded:
    return Loaded(
        active=value.get("ActiveState", "inactive"),
        sub=value.get("SubState", "dead"),
        main_pid=int(value.get("MainPID") or 0),
        invocation=value.get("InvocationID", ""),
        enabled=value.get("UnitFileState", ""),
        started=int(value.get("ExecMainStartTimestampMonotonic") or 0),
        outdated=value.get("NeedDaemonReload") == "yes",
        restarts=int(value.get("NRestarts") or 0),
        job=value.get("Job", "0"),
    )


def paths_of(record: Record) -> list[Path]:
    """Where the text of a put, or a part of it, is installed."""
    if record.kind == "env":
        return [environment.path(record.deployment), key_file.path(record.deployment)]
    return [UNITS / record.unit]


def state_of(store: Store, path: Path) -> str:
    """How a file compares with what was written there."""
    noted = store.installed().get(str(path))
    if noted is None:
        return NOT_WRITTEN
    if not os.path.lexists(path):
        return MISSING
    if file_digest(path) != noted:
        return EDITED
    closed = path.parent != environment.FOLDER or not path.lstat().st_mode & 0o077
    return AS_WRITTEN if closed else OPEN


def late_drop_ins(store: Store, unit: str) -> list[Path]:
    """Drop-ins that came after a unit was written here: they are drift, and are taken away.

    Those of a unit that is still to be written were there first: `stage` refuses them.
    """
    return [] if state_of(store, UNITS / unit) == NOT_WRITTEN else drop_ins(unit)


def drop_ins_by_hand(store: Store, unit: str) -> list[Path]:
    """Drop-ins of a unit that somebody else wrote: they are replaced together with it."""
    return drop_ins(unit) if install.by_hand(store, unit) else []


def drop_ins(unit: str) -> list[Path]:
    """Drop-ins that somebody left for a unit of ours."""
    return sorted(path for folder in OVERRIDES for path in (folder / f"{unit}.d").glob("*.conf"))


def changed_before_start(unit: Loaded, paths: list[Path]) -> bool:
    """Whether the unit's process was started from files that somebody had changed."""
    if unit.down or unit.outdated or not unit.started:
        return False
    times = [path.lstat().st_ctime for path in paths if os.path.lexists(path)]
    return any(when < _since_epoch(unit.started) for when in times)


def changed_after_start(unit: Loaded, paths: list[Path]) -> bool:
    """Whether one of the files is newer than the unit's process, and so says nothing about it."""
    return any(path.lstat().st_ctime > _since_epoch(unit.started) for path in paths)


def _since_epoch(monotonic: int) -> float:
    return time.time() - (time.monotonic() - monotonic / 1e6)
