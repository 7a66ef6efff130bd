"""What an operator sees on the host: `cutover status` and `cutover log`."""

from __future__ import annotations

import time
from typing import Any

from . import lock, systemd
from .attempt import Journal, attempts, latest
from .bars import bars
from .nvidia_smi import read_gpus
from .serving import is_healthy, key_of
from .store import Store

OK, UNHEALTHY, NOTHING, BUSY = 0, 1, 2, 3
"""Exit codes of `cutover status`, for monitoring."""


def status(store: Store) -> tuple[int, dict[str, Any]]:
    """Exit code and facts: what serves, since when, how healthy, what the GPUs report."""
    serving = store.serving()
    journal = latest(store)
    attempt = journal.load() if journal else None
    busy = lock.is_held("cutover")
    reading = read_gpus()
    facts: dict[str, Any] = {
        "serves": None,
        "healthy": False,
        "cutover": attempt.deployment if attempt and busy else None,
        "lock": attempt.describe() if attempt and busy else None,
        "gpus_mib": [gpu.used_mib for gpu in reading.gpus],
        "gpus_problem": reading.problem,
        "last": {"outcome": attempt.outcome, "error": attempt.error} if attempt else None,
    }
    if serving:
        order = serving.order
        state = systemd.state(order.unit)
        facts.update(
            serves=order.deployment,
            unit=order.unit,
            state=f"{state.active} ({state.sub})",
            enabled=state.enabled == "enabled",
            url=order.probe.url,
            since=time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(serving.since)),
            healthy=is_healthy(order, key_of(store, order, serving.env_digest)),
            **{k: v for k, v in serving.evidence.items() if k.endswith(("_seconds", "_second"))},
        )
    if busy:
        return BUSY, facts
    if not serving:
        return NOTHING, facts
    return (OK if facts["healthy"] else UNHEALTHY), facts


def describe(facts: dict[str, Any]) -> str:
    """The facts for people."""
    lines = []
    if facts["cutover"]:
        lines.append(f"{facts['lock']}: `cutover log` shows it")
    if facts["serves"]:
        health = "healthy" if facts["healthy"] else "NOT HEALTHY"
        lines.append(f"{facts['serves']} serves at {facts['url']} since {facts['since']}, {health}")
        enabled = "enabled" if facts["enabled"] else "NOT ENABLED"
        lines.append(f"{facts['unit']}: {facts['state']}, {enabled}")
    else:
        lines.append("nothing was committed to serve on this host yet")
    lines.append(
        facts["gpus_problem"] or "GPUs, MiB: " + " ".join(str(mib) for mib in facts["gpus_mib"])
    )
    if facts["last"] and facts["last"]["error"]:
        lines.append(f"last cutover ({facts['last']['outcome']}): {facts['last']['error']}")
    return "\n".join(lines)


def log(store: Store, columns: int = 0) -> str:
    """Events of every transaction that the host remembers, oldest first.

    `columns` is the width of a terminal, which also gets bars of how long each part took.
    """
    lines = []
    for name, attempt in attempts(store).items():
        for event in Journal(store, name).events():
            clock = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(event["time"]))
            lines.append(f"{clock} {name} {event['phase']}: {event['text']}")
        lines += bars(attempt.evidence.get("phases", {}), columns)
    return "\n".join(lines)
