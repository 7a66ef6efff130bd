"""How long each part of a cutover took, drawn for a terminal."""

from __future__ import annotations

from collections.abc import Mapping

from .moments import ORDER

NARROWEST = 60
"""Columns below which bars would say nothing."""
_LABEL = "    {:8} {:8.1f} s  "


def bars(phases: Mapping[str, float], columns: int) -> list[str]:
    """A line for each part, the longest of them as wide as the terminal; none where that is too
    narrow, or no terminal (0 columns).
    """
    parts = [(name, phases[name]) for name in ORDER if name in phases]
    room = columns - len(_LABEL.format("", 0))
    longest = max((seconds for _, seconds in parts), default=0)
    if columns < NARROWEST or not longest:
        return []
    return [
        (_LABEL.format(name, seconds) + "#" * round(seconds / longest * room)).rstrip()
        for name, seconds in parts
    ]
