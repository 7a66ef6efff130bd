"""What a practice host shows at one moment."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox import Host
from tests.acceptance.stack import UNITS

LOOK = Path(__file__).with_name("look.py").read_text()


@dataclass(frozen=True)
class Sight:
    """The host as it is, whatever the agent says about it."""

    model: str
    """The id that a request is answered with; empty where nobody answers."""
    enabled: list[str]
    """Model units that start at boot."""
    running: list[str]
    """Model units that are neither inactive nor failed."""
    on_trial: list[str]
    """Model units that systemd would not start again after a crash."""
    holders: list[str]
    """Units whose processes hold a GPU; `pid N` for a process of no unit."""
    left: list[str]
    """Traces of a trial, half-written files, and failed units of the agent."""
    files: dict[str, dict[str, str]]
    """Texts of the unit and its environment, by deployment."""
    canary: bool
    """Whether the canary lives."""
    state: dict[str, Any]
    """The record of the newest transaction."""


def look(host: Host, canary: int = 0) -> Sight:
    """Looks once; takes a fifth of a second."""
    shown = host.exec(["python3", "-c", LOOK, json.dumps(UNITS), str(canary)])
    return Sight(**json.loads(shown.stdout))
