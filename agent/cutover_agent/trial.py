"""A unit on trial: systemd does not start it again by itself, so that a crash is seen at once."""

from __future__ import annotations

import re
from pathlib import Path

from . import systemd
from .files import beside, remove, write_atomic
from .unit_text import directives

RUNTIME = Path("/run/systemd/system")
"""A reboot empties it: a trial never outlives the boot that it began in."""
NAME = "90-cutover-trial.conf"
_BEFORE = "ExecStartPre"
_SWEEP = re.compile(r"[-+]*/usr/local/bin/cutover sweep ")


def begin(unit: str, swept: str = "") -> None:
    """Puts a unit on trial; call it before the start.

    `swept` is the unit's text where its leftovers are ended already: it then starts without doing
    that once more, which takes as long as everything else between an old model and a new one.
    """
    path = _drop_in(unit)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, "\n".join(["[Service]", "Restart=no", *_without_sweep(swept), ""]), 0o644)
    systemd.call("daemon-reload")
    systemd.call("reset-failed", unit, check=False)


def end(unit: str) -> None:
    """Gives a unit its own Restart= back, without restarting it."""
    folder = _drop_in(unit).parent
    if folder.exists():
        for path in (_drop_in(unit), beside(_drop_in(unit))):
            remove(path)
        if not any(folder.iterdir()):
            folder.rmdir()
    systemd.call("daemon-reload")


def _without_sweep(text: str) -> list[str]:
    """Directives that forget a unit's own sweep, and keep whatever else it runs first."""
    before = directives(text).get(_BEFORE, [])
    others = [command for command in before if not _SWEEP.match(command)]
    if others == before:
        return []
    return [f"{_BEFORE}=", *(f"{_BEFORE}={command}" for command in others)]


def _drop_in(unit: str) -> Path:
    return RUNTIME / f"{unit}.d" / NAME
