"""The smoke requests, one after the other or several at once, and how fast they are together."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Optional

from . import probe
from .clock import now
from .order import Probe
from .probe import Answer


def ask(order: Probe, key: Optional[str], seconds: float) -> Answer:
    """All requests of the smoke test: the last answer, with the tokens and time of all together.

    Each may take `seconds`. Raises WrongServer as soon as one of them proves nothing.
    """
    started = now()
    with ThreadPoolExecutor(order.concurrency) as pool:
        jobs = [pool.submit(probe.smoke, order, key, seconds) for _ in range(order.requests)]
        try:
            answers = [job.result() for job in jobs]
        finally:
            for job in jobs:
                job.cancel()
    tokens, last = sum(answer.tokens for answer in answers), answers[-1]
    return Answer(last.text, tokens, now() - started, last.still_thinking)


def warning(order: Probe, answer: Answer) -> str:
    """A sentence where the model answers slower than it should, or did not come to its answer;
    empty where neither is so.
    """
    if answer.still_thinking:
        return (
            f"the model still thought when its {order.max_tokens} tokens were used up, so that "
            "there is no answer to look at: set a larger smoke.max_tokens"
        )
    tokens_per_second = answer.tokens_per_second
    if not tokens_per_second < order.min_tokens_per_second:
        return ""
    asked = f"{order.requests} requests, {order.concurrency} at once"
    return (
        f"{tokens_per_second} tokens/s ({asked}) are below {order.min_tokens_per_second:g}, "
        "which smoke.min_tokens_per_second expects"
    )
