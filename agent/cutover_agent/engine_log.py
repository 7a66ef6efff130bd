"""What an engine's own log says about how long the parts of its load took."""

from __future__ import annotations

import re
from collections.abc import Iterable

_SECONDS = r"(\d+(?:\.\d+)?)"
PARTS = {
    "weights": (
        rf"Loading weights took {_SECONDS} seconds",  # vLLM
        rf"Load weight end\. elapsed={_SECONDS} s",  # SGLang
    ),
    "compile": (rf"torch\.compile (?:takes|and initial profiling run took) {_SECONDS} s",),
    "capture": (
        rf"Graph capturing finished in {_SECONDS} secs",
        rf"Capture [\w ]*cuda graph end\. (?:Time elapsed: |elapsed=){_SECONDS} s",
    ),
}
_PATTERNS = {part: re.compile("|".join(texts), re.IGNORECASE) for part, texts in PARTS.items()}
_PROCESS = re.compile(r"^\((?P<name>[^)]*)\)|^\[[\d: -]*(?P<rank>[^]]*)\]")


def load_parts(lines: Iterable[str]) -> dict[str, float]:
    """Seconds by part, as far as the log tells.

    The workers load side by side, so the slowest counts; what one of them does twice, as for a
    model and its draft, it does one after the other.
    """
    spent: dict[str, dict[str, float]] = {}
    for text in lines:
        for part, pattern in _PATTERNS.items():
            found = pattern.search(text)
            if found:
                seconds = float(next(group for group in found.groups() if group))
                by_process = spent.setdefault(part, {})
                who = _process(text)
                by_process[who] = by_process.get(who, 0.0) + seconds
    return {part: max(by_process.values()) for part, by_process in spent.items()}


def _process(text: str) -> str:
    """Who wrote a line: what the engines put before it, less the time."""
    found = _PROCESS.match(text)
    return (found["name"] or found["rank"] or "") if found else ""
