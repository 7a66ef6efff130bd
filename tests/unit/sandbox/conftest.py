"""The practice engine lives in the host's own file system; here its parts are tested alone."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "dev/sandbox/guest"))
