"""Time that keeps running while the host sleeps, and waiting without fixed sleeps."""

from __future__ import annotations

import time
from typing import Callable, Optional, TypeVar

T = TypeVar("T")

POLL_SECONDS = 0.05


def now() -> float:
    """Seconds since boot, suspended time included; comparable within one boot only."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def wall() -> float:
    """Seconds since the epoch, for people; never used to measure."""
    return time.time()


def boot_id() -> str:
    """Names the running boot, so that a time of another boot is not compared with this one."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


class Deadline:
    """A moment by which something must have happened."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.started = now()

    @property
    def spent(self) -> float:
        """Seconds since the deadline was set."""
        return now() - self.started

    @property
    def left(self) -> float:
        """Seconds until the deadline, never negative."""
        return max(0.0, self.seconds - self.spent)

    @property
    def passed(self) -> bool:
        """Whether no time is left."""
        return self.left == 0


def wait_for(
    check: Callable[[], Optional[T]], deadline: Deadline, interval: float = POLL_SECONDS
) -> Optional[T]:
    """Polls until `check` gives something true, and returns that; None when time is up.

    `check` runs at least once, and once more at the deadline itself.
    """
    while True:
        last = deadline.passed
        value = check()
        if value:
            return value
        if last:
            return None
        time.sleep(min(interval, deadline.left))
