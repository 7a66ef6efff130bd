"""Declares which model every GPU host serves."""

import os
import signal
import sys
from pathlib import Path

import pulumi

# The CLI interrupts the program when an update fails; a traceback would bury what failed.
signal.signal(signal.SIGINT, lambda *_: os._exit(1))
# The project's own folder as well: the SDK takes it away before `program` runs.
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "agent")]

from components.program import program  # noqa: E402

pulumi.run(program)
