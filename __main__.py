"""Declares which model every GPU host serves."""

import os
import signal
import sys
from pathlib import Path

# The CLI interrupts the program when an update fails; a traceback would bury what failed.
signal.signal(signal.SIGINT, lambda *_: os._exit(1))
sys.path.insert(0, str(Path(__file__).parent / "agent"))

from components.fleet import fleet  # noqa: E402

fleet()
