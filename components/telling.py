"""Says on the host's own resource what the host said about itself."""

from __future__ import annotations

import pulumi

from cutover.facts import Answer, NoFacts
from cutover.host import Host
from cutover.outlook import sentences
from cutover_agent.order import Order


def tell(name: str, host: Host, answer: Answer, order: Order, resource: pulumi.Resource) -> None:
    """Log lines of a preview; what an `up` does about a silent host is the fleet's business."""
    if isinstance(answer, NoFacts):
        _tell_silence(name, answer, resource)
        return
    if not host.host_key and answer.host_key:
        pulumi.log.warn(
            f"{name}: its key is not pinned, so any machine at {host.address} is believed: compare "
            f"it with /etc/ssh/*.pub there, then add `host_key: {answer.host_key}`",
            resource,
        )
    for sentence in sentences(answer, order):
        pulumi.log.info(f"{name}: {sentence}", resource)


def _tell_silence(name: str, answer: NoFacts, resource: pulumi.Resource) -> None:
    if answer.reason and pulumi.runtime.is_dry_run():
        pulumi.log.warn(f"{name}: {answer.sentence}; what has drifted is not shown", resource)
