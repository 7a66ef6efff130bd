"""Runs the agent as a systemd unit of its own, which nobody's session can take along."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence

from . import systemd
from .recovery import UNIT as RECOVERY


def transaction(name: str, deployment: str, models: Sequence[str]) -> str:
    """Starts the unit that carries a transaction out, and returns its name.

    `models` are units that have to outlive it when the host is shut down: else it would take their
    end for a crash.
    """
    unit = f"cutover-{name}"
    subprocess.run(
        [
            "systemd-run",
            "--collect",
            "--quiet",
            f"--unit={unit}",
            f"--description=cutover to {deployment}",
            "--property=Type=exec",
            "--property=OOMScoreAdjust=-1000",
            f"--property=OnFailure={RECOVERY}",
            *(f"--property=After={model}" for model in models),
            sys.executable,
            "-I",
            os.path.realpath(sys.argv[0]),
            "transaction",
            name,
        ],
        stdin=subprocess.DEVNULL,
        check=True,
    )
    return unit


def recovery() -> None:
    """Starts the unit that finishes an open transaction."""
    systemd.call("reset-failed", RECOVERY, check=False)
    systemd.call("start", "--no-block", RECOVERY)


def heed_the_end() -> None:
    """Makes SIGTERM a failure, which recovery answers, unless the host itself goes down."""

    def end(*_: object) -> None:
        os._exit(0 if systemd.shutting_down() else 1)

    signal.signal(signal.SIGTERM, end)
