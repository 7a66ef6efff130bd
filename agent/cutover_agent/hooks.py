"""Commands of the host's owner that a cutover runs: before the stop, and when it is over."""

from __future__ import annotations

import os
import subprocess
import tempfile
from typing import Callable

from .checks import Refused
from .order import Order


def before_stop(order: Order, tell: Callable[[str], None]) -> None:
    """Raises Refused where the command fails or takes too long: then nothing is stopped."""
    problem = _run("before_stop", order.hooks.before_stop, order, tell)
    if problem:
        raise Refused(f"{problem}: nothing is stopped")


def afterwards(name: str, order: Order, tell: Callable[[str], None]) -> None:
    """Runs `after_commit` or `after_rollback`; a failure is told, and changes nothing else."""
    problem = _run(name, getattr(order.hooks, name), order, tell)
    if problem:
        tell(problem)


def _run(name: str, argv: tuple[str, ...], order: Order, tell: Callable[[str], None]) -> str:
    """Why the command failed; empty when it did not, or when there is none."""
    if not argv:
        return ""
    known = {"CUTOVER_HOST": order.host, "CUTOVER_DEPLOYMENT": order.deployment}
    # A file, not a pipe: a child that it leaves behind would keep a pipe open for ever.
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        try:
            code = subprocess.run(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=order.hooks.seconds,
                env={**os.environ, **known, "CUTOVER_EVENT": name},
            ).returncode
        except OSError as error:
            return f"{name}: {argv[0]} cannot be run ({error.strerror})"
        except subprocess.TimeoutExpired:
            return f"{name}: {argv[0]} was not done after {order.hooks.seconds} s"
        output.seek(0)
        last = output.read().strip().rpartition("\n")[2][:200]
    said = f"{name}: {argv[0]} exits {code}{': ' if last else ''}{last}"
    if code:
        return said
    tell(said)
    return ""
