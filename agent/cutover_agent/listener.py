"""Whether it is a unit's own process that listens where its model is to answer."""

from __future__ import annotations

from .ports import read_listeners
from .processes import read_processes


def stranger(url: str, unit: str) -> str:
    """Who listens on the port of `url` in place of a unit; empty where the unit does, or nobody."""
    listeners = read_listeners(url, read_processes())
    if not listeners or any(one.process and one.process.unit == unit for one in listeners):
        return ""
    return listeners[0].describe()
