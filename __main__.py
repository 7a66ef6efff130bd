"""Declares which model every GPU host serves."""

import os
import signal
import sys
from pathlib import Path

import pulumi

# The CLI interrupts the program when an update fails; a traceback would bury what failed.
signal.signal(signal.SIGINT, lambda *_: os._exit(1))
# The project's own folder as well: the SDK takes it away before `main` runs.
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "agent")]

from components.fleet import fleet  # noqa: E402


async def main() -> None:
    """Registers everything, and waits until it is.

    At the end of a program the SDK looks at all that is outstanding whenever one thing is done:
    with 560 resources that took half of a preview.
    """
    await fleet().future()


pulumi.run(main)
