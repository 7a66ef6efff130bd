"""Whether a row ended as the matrix says, as a pure function of what was seen."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.acceptance.stack import MODELS, UNITS
from tests.faults.matrix import Row
from tests.faults.sight import Sight


@dataclass
class Result:
    """One row of the table."""

    phase: str
    fault: str
    expected: str
    end: str = ""
    seconds: float = 0.0
    """From the stop of the old model to a verified service; from the fault where that came first.
    """
    bound: int = 0
    """What `stage` printed; a boot, where there was one, as long as it took."""
    canary: str = "alive"
    problems: list[str] = field(default_factory=list)

    @property
    def row(self) -> dict[str, object]:
        """As the table has it."""
        return {**vars(self), "pass": not self.problems}


@dataclass(frozen=True)
class Switch:
    """What a row changes: the deployment, and a mark in the new one's files."""

    old: str
    new: str
    mark: str

    def right(self, row: Row) -> str:
        """The deployment that has to be there in the end; at a dead end, at the next boot."""
        return self.new if row.expected == "new" else self.old


def end_of(seen: Sight, switch: Switch) -> str:
    """Who serves, by a request; or the dead end."""
    if seen.state.get("outcome") == "dead-end":
        return f"dead end: {seen.state['dead_end']}"
    names = {MODELS[switch.old]: "old", MODELS[switch.new]: "new"}
    return names.get(seen.model, "nothing")


def problems(row: Row, switch: Switch, before: Sight, seen: Sight) -> list[str]:
    """What is not as it has to be; empty when all is."""
    right, outcome = switch.right(row), seen.state.get("outcome", "")
    end, unit, found = end_of(seen, switch), UNITS[switch.right(row)], []
    if end != row.expected:
        found.append(f"{end}, not {row.expected} ({outcome or 'no outcome'})")
    if seen.state.get("id") == before.state.get("id") or not outcome:
        found.append("the transaction has no end")
    if seen.enabled != [unit]:
        found.append(f"enabled: {seen.enabled}")
    if end in ("old", "new") and not seen.running == seen.holders == [unit]:
        found.append(f"running: {seen.running}, on the GPUs: {seen.holders}")
    if right == switch.old and seen.files != before.files:
        found.append("files are not as they were")
    if right == switch.new and not has_mark(seen, switch):
        found.append("the new files are not in place")
    if seen.on_trial:
        found.append(f"still on trial: {seen.on_trial}")
    if seen.left:
        found.append(f"left over: {seen.left}")
    if not seen.canary:
        found.append("the canary died")
    return found


def has_mark(seen: Sight, switch: Switch) -> bool:
    """Whether both files of the new deployment are those of this row."""
    return all(switch.mark in text for text in seen.files[switch.new].values())


def converged(seen: Sight, switch: Switch) -> bool:
    """Whether the host is where one more `up` has to bring it."""
    there = seen.enabled == seen.running == seen.holders == [UNITS[switch.new]]
    return there and seen.model == MODELS[switch.new] and has_mark(seen, switch)
