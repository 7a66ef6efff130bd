"""Containers that a host's settings name: their ids, and stopping them by their own engine."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable

ENGINES = ("docker", "podman", "nerdctl")
CALL_SECONDS = 20


def ids_of(names: Iterable[str]) -> dict[str, str]:
    """Full id by name, as far as a container engine knows the name; an id stands for itself."""
    found = {}
    for name in names:
        for engine in _engines():
            done = _call(CALL_SECONDS, engine, "inspect", "--format", "{{.Id}}", name)
            if done:
                found[name] = done.split()[0]
    return found


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
