"""Where the practice hosts keep what they build, and what they are while they run."""

from __future__ import annotations

import os
from pathlib import Path

GUEST = Path(__file__).parent / "guest"


def cache_root() -> Path:
    """The folder for everything that is built once and kept."""
    if chosen := os.environ.get("CUTOVER_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cutover"


def state_root() -> Path:
    """The folder with one sub-folder per practice host that exists on this machine."""
    # On disk and not in /run: a host's own disk is in here, and /run is memory.
    return Path(os.environ.get("CUTOVER_SANDBOX", "/var/tmp/cutover-sandbox"))
