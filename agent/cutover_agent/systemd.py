"""What the agent asks of systemd; every call is short, none waits for a job."""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass

from .clock import Deadline, now, wait_for

CALL_SECONDS = 30
KILL_SECONDS = 15
"""How long processes may take to vanish after SIGKILL where no order says it."""


class SystemdError(RuntimeError):
    """systemctl refused; the text is its own last line."""


class Unkillable(SystemdError):
    """Processes that even SIGKILL does not end: nothing but a reset or a reboot frees the GPU."""


@dataclass(frozen=True)
class UnitState:
    """A unit as systemd sees it now."""

    active: str
    sub: str
    main_pid: int
    restarts: int
    invocation: str
    enabled: str
    result: str
    job: int = 0
    """Number of the job that is queued for it; 0 when there is none."""

    @property
    def down(self) -> bool:
        """Whether the unit counts as not serving: anything but inactive or failed may load."""
        return self.active in ("inactive", "failed") and not self.job


_PROPERTIES = "ActiveState,SubState,MainPID,NRestarts,InvocationID,UnitFileState,Result,Job"


def call(*arguments: str, check: bool = True) -> str:
    """Runs systemctl and returns what it printed; raises SystemdError where it failed."""
    try:
        done = subprocess.run(
            ["systemctl", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=CALL_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise SystemdError(
            f"systemctl {' '.join(arguments)}: no answer within {CALL_SECONDS} s"
        ) from None
    if check and done.returncode != 0:
        said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise SystemdError(f"systemctl {' '.join(arguments)}: {said[-1]}")
    return done.stdout


def state(unit: str) -> UnitState:
    """The state of one unit; a unit that systemd does not know is inactive."""
    return states([unit])[unit]


def states(units: list[str]) -> dict[str, UnitState]:
    """The states of several units in one question: a release asks for them while nothing serves."""
    if not units:
        return {}
    shown = call("show", *units, f"--property={_PROPERTIES}")
    blocks = shown.strip().split("\n\n")
    if len(blocks) != len(units):
        raise SystemdError(f"systemctl show: {len(blocks)} answers about {len(units)} units")
    return {unit: _parsed(block) for unit, block in zip(units, blocks)}


def _parsed(block: str) -> UnitState:
    value = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
    return UnitState(
        active=value.get("ActiveState", "inactive"),
        sub=value.get("SubState", "dead"),
        main_pid=int(value.get("MainPID") or 0),
        restarts=int(value.get("NRestarts") or 0),
        invocation=value.get("InvocationID", ""),
        enabled=value.get("UnitFileState", ""),
        result=value.get("Result", ""),
        job=int(value.get("Job") or 0),
    )


def shutting_down() -> bool:
    """Whether the host is on its way off or to a reboot: then nothing can be started any more."""
    return call("is-system-running", check=False).strip() == "stopping"


def start(unit: str) -> None:
    """Queues a start; readiness is watched by the agent itself."""
    call("start", "--no-block", unit)


def executed_at(unit: str) -> float:
    """When the main process of a unit that runs was started, in seconds since boot; else 0."""
    shown = call("show", unit, "--property=ExecMainStartTimestampMonotonic", "--value").strip()
    if not shown.isdigit() or shown == "0":
        return 0.0
    # systemd's clock stands still while the host sleeps.
    return int(shown) / 1e6 + now() - time.clock_gettime(time.CLOCK_MONOTONIC)


def stop(unit: str, seconds: float, kill: float = KILL_SECONDS) -> str:
    """Stops a unit until it is inactive; returns how it went beyond a plain stop, or nothing.

    After `seconds` its processes are killed. Raises Unkillable when even that does not end it
    within `kill` seconds.
    """
    call("stop", "--no-block", unit)
    if wait_for(lambda: state(unit).down, Deadline(seconds)):
        return ""
    call("kill", "--signal=SIGKILL", unit, check=False)
    if wait_for(lambda: state(unit).down, Deadline(kill)):
        return f"{unit} did not stop within {seconds:.0f} s and was killed"
    raise Unkillable(
        f"{unit} does not end even after SIGKILL: a process of it hangs in the kernel, "
        "reset the GPU or reboot the host"
    )


def journal(unit: str, invocation: str, lines: int) -> list[str]:
    """The last lines that one run of a unit wrote, and systemd about it; none when it is slow."""
    match = ["--unit", unit]
    if invocation:
        match = [f"_SYSTEMD_INVOCATION_ID={invocation}", "+", f"INVOCATION_ID={invocation}"]
    try:
        done = subprocess.run(
            ["journalctl", *match, "--output=cat", "--no-pager", f"--lines={lines}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=CALL_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return []
    return done.stdout.splitlines()
