"""What a host said about itself, and what of the program's resources has drifted there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

VERSION = 1
MOST_LINES, MOST_CHARACTERS = 20, 800
"""What is shown of one host, or as the reasons of one resource: more would bury the rest."""
AGENT, STAGE, RUNBOOK = "agent", "stage", "runbook"


@dataclass(frozen=True)
class Facts:
    """One host's answer; see the agent's `facts` for what it holds."""

    value: Mapping[str, Any]
    host_key: str = ""
    """The key that the host has shown, as in its .pub file."""
    proxy_key: str = ""
    """The same of its jump host."""

    @property
    def known(self) -> bool:
        """Whether the host remembers this program at all."""
        return bool(self.value["known"])


@dataclass(frozen=True)
class NoFacts:
    """A host that was not asked, or did not answer."""

    reason: str = ""
    """Why it did not answer; empty where facts are switched off."""
    stranger: str = ""
    """Field of the pin that differs from the key shown: nothing may be sent there; else empty."""
    address: str = ""
    """Where that other key was shown."""

    @property
    def sentence(self) -> str:
        """For people, without the host's name."""
        return f"the host cannot be asked: {self.reason}"


Answer = Facts | NoFacts
NO_FACTS = NoFacts()
"""Facts are switched off."""


@dataclass(frozen=True)
class Repair:
    """How often a resource was repaired, this time included, and why it is now."""

    known: bool
    """Whether the host could tell; if not, the count in Pulumi's state has to stay."""
    count: int = 0
    reasons: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """What the command line gets: an option that makes it differ from the last one."""
        return ("--repair", str(self.count)) if self.count else ()


NO_REPAIR = Repair(known=True)
"""Of a step whose work cannot drift by itself."""


def parse(text: str, host_key: str = "", proxy_key: str = "") -> Answer:
    """The agent's JSON; NoFacts where it is none that this program understands."""
    try:
        value = json.loads(text)
        version = value["version"]
    except (ValueError, KeyError, TypeError):
        return NoFacts("its agent gives no facts that can be read")
    if version != VERSION:
        return NoFacts(f"its facts have version {version}, this program reads {VERSION}")
    return Facts(value, *(" ".join(key.split()[:2]) for key in (host_key, proxy_key)))


def put_root(kind: str, deployment: str) -> str:
    """How the host names a put among what can drift."""
    return f"{kind}:{deployment}"


def repair_of(answer: Answer, root: str, moment: int) -> Repair:
    """What the command of a root shall say.

    Where the host remembers no such root it may be new, or it may have forgotten: then the count is
    `moment`, seconds since the epoch, which is more than any count that Pulumi's state can hold, so
    that the command runs either way.
    """
    if isinstance(answer, NoFacts):
        return Repair(known=False)
    value = answer.value
    if not answer.known:
        return Repair(True, moment)
    if root not in (AGENT, STAGE) and root not in value["put"]:
        return Repair(True, moment)
    reasons = tuple(shortened(value["drift"].get(root, ())))
    return Repair(True, value["repairs"].get(root, 0) + bool(reasons), reasons)


def shortened(lines: Sequence[str]) -> list[str]:
    """The first of these lines, each of a bounded length; says what was left out."""
    more = len(lines) - MOST_LINES
    cut = [
        line if len(line) <= MOST_CHARACTERS else f"{line[:MOST_CHARACTERS]} ..."
        for line in lines[:MOST_LINES]
    ]
    return [*cut, f"and {more} more: see `cutover facts` on the host"] if more > 0 else cut
