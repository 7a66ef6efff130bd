"""Says on the host's own resource what the host said about itself."""

from __future__ import annotations

import pulumi

from cutover.facts import Answer, Facts, NoFacts
from cutover.host import Host, Proxy
from cutover.outlook import sentences
from cutover_agent.order import Order

SCAN = "<what ssh-keyscan -t ed25519 prints behind the address>"


def tell(name: str, host: Host, answer: Answer, order: Order, resource: pulumi.Resource) -> None:
    """Log lines of a preview; what an `up` does about a silent host is the fleet's business."""
    for hop, where, key in _not_pinned(host, answer):
        pulumi.log.warn(
            f"{name}: no key is pinned for {hop.address}, so any machine there is believed: "
            f"compare it with /etc/ssh/*.pub there, then add{where} `host_key: {key}`",
            resource,
        )
    if isinstance(answer, NoFacts):
        _tell_silence(name, answer, resource)
        return
    for sentence in sentences(answer, order):
        pulumi.log.info(f"{name}: {sentence}", resource)


def _not_pinned(host: Host, answer: Answer) -> list[tuple[Host | Proxy, str, str]]:
    """Machines on the way that are believed, where to pin them, and the key that each has shown."""
    keys = (answer.host_key, answer.proxy_key) if isinstance(answer, Facts) else ("", "")
    hops: list[tuple[Host | Proxy, str, str]] = [(host, "", keys[0] or SCAN)]
    if host.proxy:
        hops.append((host.proxy, " below `proxy`", keys[1] or SCAN))
    return [] if host.gone else [hop for hop in hops if not hop[0].host_key]


def _tell_silence(name: str, answer: NoFacts, resource: pulumi.Resource) -> None:
    if answer.reason and pulumi.runtime.is_dry_run():
        pulumi.log.warn(f"{name}: {answer.sentence}; what has drifted is not shown", resource)
