"""Runs the agent as a systemd unit of its own, which nobody's session can take along."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from . import systemd
from .recovery import UNIT as RECOVERY

WARMING = "cutover-warm.service"
WARMING_MARGIN = 60
"""Seconds beside the reading itself: to start, and to look at what is in memory."""
NODES = Path("/sys/devices/system/node/online")


def transaction(name: str, deployment: str, models: Sequence[str]) -> str:
    """Starts the unit that carries a transaction out, and returns its name.

    `models` are units that have to outlive it when the host is shut down: else it would take their
    end for a crash.
    """
    unit = f"cutover-{name}"
    properties = [
        "OOMScoreAdjust=-1000",
        f"OnFailure={RECOVERY}",
        *(f"After={model}" for model in models),
    ]
    _run(unit, f"cutover to {deployment}", properties, "transaction", name)
    return unit


def warming(deployment: str) -> None:
    """Starts the unit that reads a checkpoint ahead, instead of one that may still do so."""
    systemd.call("stop", WARMING, check=False)
    properties = ["Nice=19", "IOSchedulingClass=best-effort", "IOSchedulingPriority=7"]
    nodes = NODES.read_text().strip() if NODES.exists() else "0"
    if nodes != "0":
        # Workers on all nodes read all of it; on one node it might not even fit.
        properties += ["NUMAPolicy=interleave", f"NUMAMask={nodes}"]
    _run(WARMING, f"reading {deployment} ahead", properties, "warming")


def _run(unit: str, description: str, properties: Sequence[str], *command: str) -> None:
    subprocess.run(
        [
            "systemd-run",
            "--collect",
            "--quiet",
            f"--unit={unit}",
            f"--description={description}",
            "--property=Type=exec",
            *(f"--property={line}" for line in properties),
            sys.executable,
            "-I",
            os.path.realpath(sys.argv[0]),
            *command,
        ],
        stdin=subprocess.DEVNULL,
        check=True,
    )


def recovery() -> None:
    """Starts the unit that finishes an open transaction."""
    systemd.call("reset-failed", RECOVERY, check=False)
    systemd.call("start", "--no-block", RECOVERY)


def heed_the_end() -> None:
    """Makes SIGTERM a failure, which recovery answers, unless the host itself goes down."""

    def end(*_: object) -> None:
        os._exit(0 if systemd.shutting_down() else 1)

    signal.signal(signal.SIGTERM, end)
