"""Processes by pid and start time, so that a pid in a file never hits somebody else."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path


def identity(pid: int) -> str:
    """`pid:start time` of a live process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return f"{pid}:{fields[19]}"


def alive(process: str) -> bool:
    """Whether exactly this process runs (a zombie does not)."""
    pid = int(process.split(":")[0])
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z" and identity(pid) == process
    except OSError:
        return False


def signal_process(process: str, number: int) -> None:
    """Send a signal if the process is still there."""
    if alive(process):
        with suppress(ProcessLookupError):
            os.kill(int(process.split(":")[0]), number)


def end(process: str, seconds: float) -> bool:
    """SIGTERM, after `seconds` SIGKILL; whether SIGTERM was enough."""
    signal_process(process, signal.SIGTERM)
    if gone(process, seconds):
        return True
    signal_process(process, signal.SIGKILL)
    gone(process, 5.0)
    return False


def gone(process: str, seconds: float) -> bool:
    """Wait for its end; whether it came in time."""
    deadline = time.monotonic() + seconds
    while alive(process):
        if time.monotonic() > deadline:
            return False
        _reap(process)
        time.sleep(0.01)
    _reap(process)
    return True


def _reap(process: str) -> None:
    with suppress(ChildProcessError):  # it may be the child of an earlier invocation
        os.waitpid(int(process.split(":")[0]), os.WNOHANG)


def kill_pid(pid: int) -> None:
    """SIGKILL to a pid that was just read from a place where only ours are."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
