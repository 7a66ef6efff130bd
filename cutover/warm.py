"""Which deployments gain from weights that are in memory before they are loaded."""

from __future__ import annotations

from cutover.deployment import Deployment
from cutover_agent.order import Warm

READS_BY_ITSELF = {
    "instanttensor": "reads past the page cache",
    "fastsafetensors": "reads past the page cache where it can",
    "runai_streamer": "reads with many threads by itself",
    "runai_streamer_sharded": "reads with many threads by itself",
    "tensorizer": "reads with many threads by itself",
    "remote": "reads from elsewhere",
    "remote_instance": "reads from elsewhere",
    "dummy": "reads no weights",
}
"""Loaders, by their name in `args.load-format`, for which a prefetch is of no use."""


def warm_for(one: Deployment, mib_per_second: int) -> Warm:
    """What a host is told about it; `mib_per_second` is the most that it may read."""
    why_not = _why_not(one) if one.warm == "auto" else ""
    return Warm(one.warm != "off" and not why_not, why_not, mib_per_second)


def _why_not(one: Deployment) -> str:
    if one.engine == "command":
        return "how it loads is not known; `warm: on` does it all the same"
    loader = str(one.args.get("load-format", ""))
    does = READS_BY_ITSELF.get(loader)
    return f"its loader {loader} {does}" if does else ""
