"""Containers that a host's settings name: their ids, and stopping them by their own engine."""

from __future__ import annotations

import functools
import shutil
import subprocess
from collections.abc import Iterable

ENGINES = ("docker", "podman", "nerdctl")
CALL_SECONDS = 20


@functools.cache
def ids_of(names: tuple[str, ...]) -> frozenset[str]:
    """Full ids, as far as a container engine knows the names.

    Asked once in a process: a release decides again while nothing serves.
    """
    asked = [(engine, name) for name in names for engine in _engines()]
    told = [_call(CALL_SECONDS, e, "inspect", "--format", "{{.Id}}", name) for e, name in asked]
    return frozenset(line.split()[0] for line in told if line)


def stop(names: Iterable[str], seconds: float) -> list[str]:
    """Asks the container engines to stop these, so that they do not come back by themselves.

    Returns a sentence about each that was stopped. The processes of one that its engine has
    forgotten are ended like any other.
    """
    lines = []
    for name in names:
        for engine in _engines():
            arguments = ("stop", "--time", str(int(seconds)), name)
            if _call(seconds + CALL_SECONDS, engine, *arguments):
                lines.append(f"container {name} is stopped")
                break
    return lines


def _engines() -> list[str]:
    return [engine for engine in ENGINES if shutil.which(engine)]


def _call(seconds: float, *command: str) -> str:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
