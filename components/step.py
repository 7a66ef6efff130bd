"""The only place that makes a remote command."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi_command import remote

from components.sudo import AS_ROOT
from cutover.facts import NO_REPAIR, Repair

AGENT = "/usr/local/bin/cutover"


@dataclass(frozen=True)
class Channel:
    """How commands reach one host."""

    host: str
    """Name of the host in the stack config; prefix of its resources' names."""
    connection: remote.ConnectionArgs
    sudo: bool | None = None
    """Whether commands run through sudo; None leaves it to who logs in."""
    gone: bool = False
    """The host is no more: nothing is sent to it, and its resources leave the state as they are."""
    protect: bool = False
    """Whether what serves there is kept from being destroyed."""

    def line(self, *words: str) -> str:
        """A command line; every word reaches the program as it is."""
        command = shlex.join(words)
        if self.sudo is None:
            return f"{AS_ROOT} {command}"
        return f"sudo -n {command}" if self.sudo else command

    def agent(self, *words: str) -> str:
        """A command line for the agent."""
        return self.line(AGENT, *words)


class Step:
    """One remote command: what it runs, what it owns on the host, what comes after it."""

    def __init__(
        self,
        name: str,
        channel: Channel,
        create: pulumi.Input[str],
        stdin: pulumi.Input[str],
        after: Sequence[Step],
        parent: pulumi.Resource,
        delete: str | None = None,
        hidden: bool = False,
        repair: Repair = NO_REPAIR,
        keeps_serving: bool = False,
    ) -> None:
        """`hidden` keeps a long or repeated stdin out of the diff; the command line still shows
        that something changes. `delete` undoes the step; its text has to stay valid for ever,
        since old states hold it. `repair` is for a step whose work can drift on the host: where the
        host could not be asked, the count of repairs on its command line stays what it was. To
        delete a step that `keeps_serving` would stop the model.
        """
        # Without the agent there is nothing of ours on the host that a delete could remove.
        undo = delete and f"test ! -x {AGENT} || {delete}"
        self.command: remote.Command = remote.Command(
            f"{channel.host}-{name}",
            connection=channel.connection,
            create=create,
            stdin=stdin,
            delete=undo,
            add_previous_output_in_env=False,
            logging=remote.Logging.STDERR,
            opts=pulumi.ResourceOptions(
                parent=parent,
                depends_on=[step.command for step in after],
                delete_before_replace=bool(delete),
                hide_diffs=["stdin"] if hidden else None,
                ignore_changes=_ignored(channel, repair),
                retain_on_delete=channel.gone,
                protect=channel.protect and keeps_serving,
            ),
        )
        who = "`pulumi up`" if pulumi.runtime.is_dry_run() else "this `up`"
        for reason in repair.reasons:
            pulumi.log.warn(f"{channel.host}: {reason}: {who} repairs it", self.command)

    @property
    def result(self) -> pulumi.Output[dict[str, Any]]:
        """What the agent reported; it never prints a secret, even where it was given one."""
        return self.command.stdout.apply(json.loads)

    @property
    def receipt(self) -> pulumi.Output[str]:
        """Goes on the command line of later steps, which so run whenever this one ran."""
        return self.result.apply(lambda result: str(result["receipt"]))


def _ignored(channel: Channel, repair: Repair) -> list[str] | None:
    """Inputs that stay as they are in Pulumi's state."""
    if channel.gone:
        return ["connection", "create", "delete", "stdin"]
    return None if repair.known else ["create"]


def owner(kind: str, channel: Channel, name: str) -> str:
    """How a resource signs what it owns on a host: component type and logical name."""
    return f"{kind}::{channel.host}-{name}"
