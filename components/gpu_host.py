"""One GPU host: the graph from its agent to the service of every deployment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from components.agent import agent_step
from components.connection import connection
from components.model_deployment import ModelDeployment
from components.release import cutover
from components.step import Channel, Step, owner
from components.telling import tell
from cutover.facts import AGENT, NO_FACTS, RUNBOOK, STAGE, Answer, Repair, repair_of
from cutover.host import Keys
from cutover.orders import declared_for, order_for, public_url
from cutover.runbook import render_runbook
from cutover.settings import Host
from cutover.units import Rendered

TYPE = "cutover:index:GpuHost"


@dataclass(frozen=True)
class GpuHostArgs:
    """What one host is, and what it shall serve."""

    host: Host
    keys: Keys
    catalogue: Mapping[str, Rendered]
    active: Rendered
    facts: Answer = NO_FACTS
    moment: int = 0
    """Seconds since the epoch, of this run."""


class GpuHost(pulumi.ComponentResource):
    """Its edges are the same whichever deployment is active: switching is a change of texts."""

    result: pulumi.Output[dict[str, Any]]
    """What serves, where, how the gate was passed, and what the switch cost."""
    serve: Step
    """The step that ends with a verified model."""
    last: Step
    """The step after which everything of the host is done."""

    def __init__(
        self,
        name: str,
        args: GpuHostArgs,
        after: Step | None,
        provider: pulumi.ProviderResource,
    ) -> None:
        """`after` is the step of another host that this one's cutover waits for."""
        super().__init__(TYPE, name, opts=pulumi.ResourceOptions(providers=[provider]))
        host = args.host
        channel = Channel(name, connection(host, args.keys), host.sudo, host.gone, host.protect)
        active = args.active.deployment
        order = order_for(name, host, active, args.active.unit_text)
        tell(name, args.host, args.facts, order, self)

        def repair(root: str) -> Repair:
            return repair_of(args.facts, root, args.moment)

        agent = agent_step(channel, TYPE, repair(AGENT), self, host.on_destroy == "keep")
        deployments, last = {}, agent
        for key, files in args.catalogue.items():
            deployments[key] = ModelDeployment(files, channel, last, self, repair)
            last = deployments[key].unit
        puts = [step for d in deployments.values() for step in (d.environment, d.unit)]
        steps = cutover(
            channel,
            order.to_json(),
            deployments[active.name].environment.receipt,
            [agent, *puts, *([after] if after else [])],
            self,
            repair(STAGE),
        )
        last = steps.serve
        for key, files in args.catalogue.items():
            declared = declared_for(files.deployment, active, files.unit_text)
            last = deployments[key].declare_service(
                declared.to_json(), steps.serve.receipt, last, steps.serve
            )
        signed = ("--owner", owner(TYPE, channel, "runbook"))
        where = ("--path", args.host.runbook, *repair(RUNBOOK).words)
        self.last = Step(
            "runbook",
            channel,
            create=channel.agent("runbook", *signed, *where),
            delete=channel.agent("drop", *signed),
            stdin=render_runbook(name, [files.deployment for files in args.catalogue.values()]),
            after=[last],
            parent=self,
            repair=repair(RUNBOOK),
            # The first that a destroy comes to: where it may not go, nothing goes.
            keeps_serving=True,
        )
        self.serve = steps.serve
        self.result = pulumi.Output.all(steps.serve.result, steps.gate.result).apply(
            lambda both: summary(both[0], both[1], public_url(host, active.listen))
        )
        self.register_outputs({"result": self.result})


def summary(served: dict[str, Any], gated: dict[str, Any], url: str) -> dict[str, Any]:
    """The stack's output for one host; a figure that was not measured is left out."""
    gate = served.get("gate") or gated.get("gate") or {}
    found = {
        "serves": served["deployment"],
        "url": url,
        "gate": gate.get("line"),
        "gate_seconds": gate.get("seconds"),
        "gpus": gate.get("gpus"),
        "load_seconds": served.get("load_seconds"),
        "tokens_per_second": served.get("tokens_per_second"),
        "down_seconds": served.get("down_seconds"),
        "gap_seconds": served.get("gap_seconds"),
        "phases": served.get("phases"),
        "warm": served.get("warm", {}).get("line"),
        "warm_percent": served.get("warm", {}).get("percent"),
        "environment": served.get("environment"),
        "warnings": [
            *served.get("environment_faults", []),
            *([served["doubt"]] if "doubt" in served else []),
        ]
        or None,
    }
    return {key: value for key, value in found.items() if value is not None}
