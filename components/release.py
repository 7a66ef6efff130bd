"""The release of a host's GPUs, and the gate that proves it."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi

from components.step import Channel, Step


@dataclass(frozen=True)
class Cutover:
    """The steps that carry one order out, each a resource of its own."""

    stage: Step
    teardown: Step
    gate: Step
    install: Step
    serve: Step


def cutover(
    channel: Channel,
    order: str,
    put: pulumi.Output[str],
    after: list[Step],
    parent: pulumi.Resource,
) -> Cutover:
    """From the checks, over the release and the gate, to the verified model.

    `order` is plain JSON: `stage` shows field by field what changes in it. `put` is the receipt of
    the active deployment's environment, whose text the order does not name.
    """

    def step(name: str, until: str, receipt: pulumi.Output[str], after: list[Step]) -> Step:
        return Step(
            name,
            channel,
            create=receipt.apply(
                lambda r: channel.agent("converge", "--until", until, "--receipt", r)
            ),
            stdin=order,
            after=after,
            parent=parent,
            hidden=name != "stage",
        )

    stage = step("stage", "staged", put, after)
    teardown = step("teardown", "released", stage.receipt, [stage])
    gate = step("gate", "gated", teardown.receipt, [teardown])
    install = step("install", "installed", gate.receipt, [gate])
    serve = step("serve", "serving", install.receipt, [install])
    return Cutover(stage, teardown, gate, install, serve)
