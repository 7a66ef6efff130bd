"""One deployment on one host: its environment, its unit, and whether the service is enabled."""

from __future__ import annotations

from collections.abc import Callable

import pulumi

from components.step import Channel, Step, owner
from cutover.facts import Repair, put_root
from cutover.units import Rendered

TYPE = "cutover:index:ModelDeployment"


class ModelDeployment(pulumi.ComponentResource):
    """Puts the deployment's files into the host's store; what runs is not touched by that."""

    environment: Step
    unit: Step
    service: Step

    def __init__(
        self,
        args: Rendered,
        channel: Channel,
        after: Step,
        parent: pulumi.Resource,
        repair: Callable[[str], Repair],
    ) -> None:
        """`repair` tells of a put, by its name on the host, whether it has drifted there."""
        self._args, self._channel, self._repair = args, channel, repair
        name = args.deployment.name
        super().__init__(
            TYPE, f"{channel.host}-{name}", None, pulumi.ResourceOptions(parent=parent)
        )
        secret_text: pulumi.Input[str] = args.environment_text
        if args.deployment.secrets:
            secret_text = pulumi.Output.secret(args.environment_text)
        self.environment = self._put("env", secret_text, after)
        self.unit = self._put("unit", args.unit_text, self.environment)
        self.register_outputs({})

    def _put(self, kind: str, text: pulumi.Input[str], after: Step) -> Step:
        deployment = self._args.deployment
        name = f"{deployment.name}-{kind}"
        signed = ("--owner", owner(TYPE, self._channel, name))
        where = ("--deployment", deployment.name, "--unit", deployment.unit)
        repair = self._repair(put_root(kind, deployment.name))
        return Step(
            name,
            self._channel,
            create=self._channel.agent("put", kind, *where, *signed, *repair.words),
            delete=self._channel.agent("drop", *signed),
            stdin=text,
            after=[after],
            parent=self,
            repair=repair,
        )

    def declare_service(
        self, declared: str, receipt: pulumi.Output[str], after: Step, gate: Step
    ) -> Step:
        """The last child: the unit is enabled and running, or not, as `declared` says."""
        name = f"{self._args.deployment.name}-service"
        signed = ("--owner", owner(TYPE, self._channel, name))
        self.service = Step(
            name,
            self._channel,
            create=receipt.apply(lambda r: self._channel.agent("service", *signed, "--receipt", r)),
            delete=self._channel.agent("drop", *signed),
            stdin=declared,
            after=[gate, after],
            parent=self,
        )
        return self.service
