"""Makes the phase in which a fault shall strike last long enough for it."""

from __future__ import annotations

import json
from typing import Any

from sandbox import Host
from tests.faults.look import STORE
from tests.faults.matrix import Row

FOLDER = "/run/practice-hold"
TENTHS = 40
"""How long a phase waits at most to be let go, in tenths of a second."""
NEWEST = f"$(ls -t {STORE}/transactions/*/state.json 2>/dev/null | head -n 1)"
HELD = ("drain", "install", "start", "commit")
"""Phases that wait, and say so; the others take their time by themselves."""
WAIT = (
    f'for n in $(seq {TENTHS}); do [ -e {FOLDER}/"$1" ] || exit 0; : > {FOLDER}/held; '
    "sleep 0.1; done"
)
# Found before the real one: what a phase asks systemd for takes a while when it is held.
SYSTEMCTL = f"""#!/bin/sh
case "$1" in start) phase=start ;; daemon-reload) phase=install ;; *) phase=none ;; esac
if [ -e {FOLDER}/$phase ] && grep -q "\\"$phase\\"" {NEWEST}; then
    (set -- $phase; {WAIT})
fi
exec /usr/bin/systemctl "$@"
"""
GPUS = "/etc/practice/gpu.json"
USUAL_GPUS = json.dumps({"count": 8})


def prepare(host: Host) -> None:
    """Puts there what can wait."""
    host.write("/usr/local/bin/systemctl", SYSTEMCTL, 0o755)


def hook(phase: str) -> list[str]:
    """A command that waits while a phase is held."""
    return ["sh", "-c", WAIT, "sh", phase]


def hold(host: Host, phase: str) -> None:
    """Holds a phase from now on."""
    host.write(f"{FOLDER}/{phase}", "")
    if phase in ("stage", "gate"):
        host.write(GPUS, json.dumps({"count": 8, "delay_seconds": 1}))


def is_held(host: Host, phase: str) -> bool:
    """Whether a phase, once begun, has come to where it waits; some never wait."""
    return phase not in HELD or not host.exec(["ls", f"{FOLDER}/held"], check=False).returncode


def let_go(host: Host, row: Row) -> None:
    """Lets the phase end, once the fault has struck; the fault stays."""
    # What waits may write there in just this moment; the phase's own file is gone all the same.
    host.exec(["rm", "-rf", FOLDER], check=False)
    if row.phase in ("stage", "gate") and row.fault != "a GPU disappears":
        host.write(GPUS, USUAL_GPUS)


def release_all(host: Host) -> None:
    """Holds nothing, and gives the host its GPUs back."""
    host.exec(["rm", "-rf", FOLDER])
    host.write(GPUS, USUAL_GPUS)


def newest_state(host: Host) -> dict[str, Any]:
    """The record of the newest transaction; empty where none can be read."""
    shown = host.exec(["sh", "-c", f"cat {NEWEST}"], check=False)
    try:
        return dict(json.loads(shown.stdout))
    except ValueError:
        return {}
