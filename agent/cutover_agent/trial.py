"""A unit on trial: systemd does not start it again by itself, so that a crash is seen at once."""

from __future__ import annotations

from pathlib import Path

from . import systemd
from .files import remove, write_atomic

RUNTIME = Path("/run/systemd/system")
"""A reboot empties it: a trial never outlives the boot that it began in."""
NAME = "90-cutover-trial.conf"


def begin(unit: str) -> None:
    """Puts a unit on trial; call it before the start."""
    path = _drop_in(unit)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, "[Service]\nRestart=no\n", 0o644)
    systemd.call("daemon-reload")


def end(unit: str) -> None:
    """Gives a unit its own Restart= back, without restarting it."""
    folder = _drop_in(unit).parent
    if folder.exists():
        for name in (NAME, f".{NAME}.new"):
            remove(folder / name)
        if not any(folder.iterdir()):
            folder.rmdir()
    systemd.call("daemon-reload")


def _drop_in(unit: str) -> Path:
    return RUNTIME / f"{unit}.d" / NAME
