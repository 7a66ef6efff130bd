"""What differs on the host from what was put and committed there, as a pure function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Optional

from .manifest import EDITED, MISSING, OPEN, Loaded
from .repairs import STAGE, root_of

CRASHES = 2
"""A unit that systemd restarted more often than this is not loading: it crashes in a loop."""

Drift = dict[str, list[str]]
"""What has drifted: the root whose command repairs it, and why, a sentence each."""


@dataclass(frozen=True)
class Found:
    """One deployment of ours as it is on the host."""

    deployment: str
    unit: str
    unit_file: str
    env_files: Mapping[str, str]
    """By path."""
    drop_ins: tuple[str, ...]
    """Path and contents of each, for people."""
    loaded: Loaded
    edit: str = ""
    """What was changed in its unit, for people."""


@dataclass(frozen=True)
class Committed:
    """What the host serves according to its last cutover."""

    deployment: str
    unit: str
    healthy: bool
    loading: bool
    stale: bool
    """Whether its process was started from files that somebody had changed."""


def drifted(found: Sequence[Found], committed: Optional[Committed], expects: str) -> Drift:
    """Everything that a repair would change; `expects` is what the program believes to serve.

    `expects` is empty where the program is about to order something else anyway.
    """
    drift: Drift = {}
    for one in found:
        for path, state in one.env_files.items():
            _add(drift, root_of("env", one.deployment), _file(state, path))
        _add(drift, root_of("unit", one.deployment), _file(one.unit_file, one.unit, one.edit))
        for path in one.drop_ins:
            _add(drift, root_of("unit", one.deployment), f"{one.unit} has the drop-in {path}")
        _add(drift, root_of("unit", one.deployment), _enablement(one, committed))
        _add(drift, STAGE, _running(one, committed))
    _add(drift, STAGE, _expected(committed, expects))
    return drift


def _add(drift: Drift, root: str, reason: str) -> None:
    if reason:
        drift.setdefault(root, []).append(reason)


def _file(state: str, name: str, edit: str = "") -> str:
    says = {EDITED: "was edited on the host", MISSING: "was removed from the host",
            OPEN: "holds secrets, and others may read it"}  # fmt: skip
    return f"{name} {says[state]}{edit and f': {edit}'}" if state in says else ""


def _enablement(one: Found, committed: Optional[Committed]) -> str:
    serves = committed is not None and committed.unit == one.unit
    enabled = one.loaded.enabled == "enabled"
    if serves and not enabled and one.unit_file != MISSING:
        return f"{one.unit} is not enabled, and so does not start at boot"
    if enabled and committed and not serves:
        return f"{one.unit} is enabled, though {committed.deployment} is what starts at boot"
    return ""


def _running(one: Found, committed: Optional[Committed]) -> str:
    if committed is None:
        return ""
    if committed.unit != one.unit:
        return "" if one.loaded.down else f"{one.unit} runs, though it shall not"
    if one.loaded.down:
        return f"{one.unit} is {one.loaded.active}: {one.deployment} does not serve"
    if committed.stale:
        return f"{one.unit} was started with what had been edited on the host"
    if not committed.healthy and not committed.loading:
        return f"{one.unit} is {one.loaded.active}, but {one.deployment} does not answer"
    return ""


def _expected(committed: Optional[Committed], expects: str) -> str:
    if not expects or (committed and committed.deployment == expects):
        return ""
    return f"{committed.deployment if committed else 'nothing'} serves, {expects} is declared"
