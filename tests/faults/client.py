"""The operator's `pulumi up`, in the background, so that something can happen to it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

from tests.acceptance.stack import Run, Stack

WORDS = ("up", "--yes", "--skip-preview", "--non-interactive")
LAST_SECONDS = 60
"""How long a client may take to see that all is over."""


class Client:
    """One call, from its start until it is gone."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.log: Path = stack.folder / "up.log"
        self.process = subprocess.Popen(
            ["pulumi", *WORDS, "--stack", stack.name],
            cwd=stack.folder,
            env=stack.env,
            stdin=subprocess.DEVNULL,
            stdout=self.log.open("wb"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def kill(self) -> None:
        """As a laptop that is switched off."""
        os.killpg(self.process.pid, signal.SIGKILL)

    def interrupt(self) -> None:
        """Ctrl-C, once."""
        os.kill(self.process.pid, signal.SIGINT)

    def end(self) -> int:
        """Waits for its end and clears the lock that a dead one leaves; its exit code."""
        try:
            self.process.wait(LAST_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        code = self.process.wait()
        if list((self.stack.folder / "state/.pulumi/locks").rglob("*.json")):
            self.stack._run("cancel", "--yes", "--stack", self.stack.name)
        return code

    def bound(self) -> int:
        """The time that `stage` printed, in seconds."""
        found = re.findall(r"at the latest (\d+) s after the stop", self.log.read_text())
        return int(found[-1])

    def said(self) -> str:
        """The end of what it printed."""
        return self.log.read_text()[-800:]


def up(stack: Stack) -> Run:
    """One more, in the foreground, whatever comes of it."""
    return stack._run(*WORDS, "--stack", stack.name, check=False)
