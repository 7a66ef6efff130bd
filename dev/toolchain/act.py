"""Running commands and saying so: progress goes to stderr, with the time that it took."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


class SetupError(Exception):
    """The tool chain cannot be set up; the text says what is wrong and what to do."""


def say(text: str, end: str = "\n") -> None:
    """Tell the person at the screen."""
    print(text, end=end, file=sys.stderr, flush=True)


@contextmanager
def doing(what: str) -> Iterator[None]:
    """Say what is being done and, at its end, how long it took."""
    started = time.monotonic()
    say(f"cutover: {what} ...", end=" ")
    try:
        yield
    except BaseException:
        say(f"failed after {time.monotonic() - started:.0f} s")
        raise
    say(f"done in {time.monotonic() - started:.0f} s")


def run(
    *argv: str | Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    limit_s: float | None = None,
) -> str:
    """Run a command to its end and return what it printed on stdout.

    `env` is added to the environment. Raises SetupError, with the end of the command's own
    words, when it cannot be run, fails, or takes longer than `limit_s` seconds.
    """
    shown = " ".join(str(word) for word in argv)
    try:
        done = subprocess.run(
            argv,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=limit_s,
        )
    except subprocess.TimeoutExpired:
        raise SetupError(f"`{shown}` took longer than {limit_s:.0f} s and was ended.") from None
    except OSError as error:
        raise SetupError(f"`{shown}` cannot be run: {error.strerror}.") from None
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise SetupError(f"`{shown}` failed with exit code {done.returncode}:\n{tail}")
    return done.stdout


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Hold the lock file `lock`, so that two set-ups do not build the same thing."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with doing("waiting for another set-up on this machine"):
                fcntl.flock(file, fcntl.LOCK_EX)
        yield
