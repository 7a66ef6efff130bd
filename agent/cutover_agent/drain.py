"""Waits for the requests that the old model still answers, before it is stopped."""

from __future__ import annotations

import re
from typing import Callable, Optional

from . import probe
from .clock import Deadline, wait_for

POLL_SECONDS = 0.5

# Gauges of vLLM and SGLang: what is answered now, and what waits for its turn.
_GAUGES = re.compile(
    r"^(?:vllm:num_requests_(?:running|waiting)|sglang:num_(?:running|queue)_reqs)"
    r"(?:\{[^}\n]*\})? +([0-9.eE+]+)",
    re.MULTILINE,
)


def in_flight(metrics: str) -> Optional[int]:
    """Requests that a server has not answered yet, from its metrics; None where they do not tell.

    Servers with several ranks have a gauge for each.
    """
    found = [float(value) for value in _GAUGES.findall(metrics)]
    return round(sum(found)) if found else None


def drain(url: str, seconds: float, tell: Callable[[str], None]) -> None:
    """Waits until nothing is in flight, `seconds` at most; a server that does not tell is not
    waited for.
    """
    answers, text = probe.metrics(url)
    if not seconds or not answers:
        return
    left = in_flight(text)
    if left is None:
        tell(f"{url}/metrics does not tell of requests in flight: none is waited for")
    if not left:
        return
    tell(f"{left} requests in flight get up to {seconds:.0f} s")

    def ended() -> bool:
        nonlocal left
        left = in_flight(probe.metrics(url)[1])
        return not left

    done = wait_for(ended, Deadline(seconds), POLL_SECONDS)
    tell("they have ended" if done else f"{left} are still in flight after that, and are cut off")
