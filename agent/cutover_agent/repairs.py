"""How often each resource that can drift was repaired, and which agent belongs here.

The program puts the count on a command line: one more where something has drifted makes the command
run, and once it has succeeded the host and the program's state agree again.
"""

from __future__ import annotations

from typing import Optional

from .files import read_json, write_json
from .store import Store

AGENT, STAGE, RUNBOOK = "agent", "stage", "runbook"


def root_of(kind: str, deployment: str) -> str:
    """The name of a put among what can drift."""
    return f"{kind}:{deployment}"


def counts(store: Store) -> dict[str, int]:
    """Repairs so far by root; a root that was never repaired has none."""
    found: dict[str, int] = read_json(store.root / "repairs.json", {})
    return found


def note(store: Store, root: str, count: Optional[int]) -> None:
    """Remembers a count once its command has succeeded; None forgets the root."""
    known = counts(store)
    found = {**known, root: count}
    wanted = {name: number for name, number in found.items() if number}
    if wanted != known:
        write_json(store.root / "repairs.json", wanted)


def own_agent(store: Store) -> str:
    """Name of the archive that was installed last; empty where none was."""
    name: str = read_json(store.root / "agent.json", "")
    return name


def note_agent(store: Store, name: str) -> None:
    """Remembers the archive that the host's agent is."""
    write_json(store.root / "agent.json", name)
