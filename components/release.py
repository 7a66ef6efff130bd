"""The release of a host's GPUs, and the gate that proves it."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi

from components.step import Channel, Step
from cutover.facts import NO_REPAIR, Repair


@dataclass(frozen=True)
class Cutover:
    """The steps that carry one order out, each a resource of its own."""

    stage: Step
    warm: Step
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
    repair: Repair,
) -> Cutover:
    """From the checks, over the release and the gate, to the verified model.

    `warm` passes the receipt of `stage` on: it reads ahead, and changes nothing.

    `order` is plain JSON: `stage` shows field by field what changes in it. `put` is the receipt of
    the active deployment's environment, whose text the order does not name. `repair` is for
    `stage`, which runs again where what serves has drifted.
    """

    def step(
        name: str,
        until: str,
        receipt: pulumi.Output[str],
        after: list[Step],
        repair: Repair = NO_REPAIR,
    ) -> Step:
        return Step(
            name,
            channel,
            create=receipt.apply(
                lambda r: channel.agent("converge", "--until", until, "--receipt", r, *repair.words)
            ),
            stdin=order,
            after=after,
            parent=parent,
            hidden=name != "stage",
            repair=repair,
            keeps_serving=name == "serve",
        )

    stage = step("stage", "staged", put, after, repair)
    # Both: a changed command line of `stage` does not count where the host could not be asked.
    staged = pulumi.Output.concat(stage.receipt, "/", put)
    warm = Step(
        "warm",
        channel,
        create=staged.apply(lambda r: channel.agent("warm", "--receipt", r)),
        stdin=order,
        after=[stage, *after],
        parent=parent,
        hidden=True,
    )
    teardown = step("teardown", "released", warm.receipt, [warm])
    gate = step("gate", "gated", teardown.receipt, [teardown])
    install = step("install", "installed", gate.receipt, [gate])
    serve = step("serve", "serving", install.receipt, [install])
    return Cutover(stage, warm, teardown, gate, install, serve)
