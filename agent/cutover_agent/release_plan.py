"""What a release does, as a pure function of what the host shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .engines import is_door, is_engine, is_launcher, is_protected
from .holders import Holder, Landscape, Service
from .policy import (
    END,
    FOREIGN,
    NEIGHBOUR,
    RULES,
    STOP,
    Case,
    Decision,
    Rule,
    Rules,
    decide,
)
from .processes import Process, ancestors, descendants


@dataclass(frozen=True)
class Tree:
    """A server that runs outside the units that are stopped, and everything below it."""

    root: Process
    members: tuple[Process, ...]
    """The root and its descendants."""


@dataclass(frozen=True)
class Verdict:
    """What happens to one holder."""

    holder: Holder
    decision: Decision

    @property
    def reason(self) -> str:
        """Why it is not, or is, ended."""
        return self.decision.reason


@dataclass(frozen=True)
class ReleasePlan:
    """What a release does; nothing else on the host is touched."""

    stop: tuple[str, ...] = ()
    """Units of this program that are stopped through systemd."""
    aside: tuple[str, ...] = ()
    """Units of others that serve a model: stopped, and kept from coming back."""
    companions: tuple[str, ...] = ()
    """Units that the host's settings name, as far as they run."""
    end: tuple[Tree, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    """Every holder, by pid."""
    warnings: tuple[str, ...] = ()

    @property
    def foreign(self) -> tuple[Verdict, ...]:
        """Holders that are left alone and stand in the way."""
        return tuple(v for v in self.verdicts if v.decision.action == FOREIGN)

    @property
    def units(self) -> tuple[str, ...]:
        """Every unit that is stopped."""
        return self.stop + self.aside + self.companions

    @property
    def signalled(self) -> frozenset[int]:
        """Every process that a signal may reach, apart from those that systemd ends."""
        return frozenset(process.pid for tree in self.end for process in tree.members)

    @property
    def lent(self) -> frozenset[int]:
        """GPUs on which nobody but neighbours is seen."""
        taken: dict[int, set[str]] = {}
        for verdict in self.verdicts:
            if verdict.holder.mib != 0:
                for index in verdict.holder.gpus:
                    taken.setdefault(index, set()).add(verdict.decision.action)
        return frozenset(index for index, actions in taken.items() if actions == {NEIGHBOUR})

    def acts(self) -> list[str]:
        """What will be ended, a line each."""
        lines = [f"stops {unit}" for unit in self.stop]
        lines += [f"stops {unit}, and keeps it from coming back" for unit in self.aside]
        lines += [f"stops {unit}, a companion" for unit in self.companions]
        return lines + [f"ends pid {tree.root.pid} ({tree.root.title})" for tree in self.end]

    def summary(self) -> list[str]:
        """All that an operator is told of it, a line each."""
        return self.acts() + [f"WARNING: {text}" for text in self.warnings]


def plan_release(
    seen: Landscape, rules: Rules, order_of_rules: tuple[Rule, ...] = RULES
) -> ReleasePlan:
    """Decides over every holder.

    Units of this program that run are stopped whether or not they hold memory now: one that crashes
    in a loop holds none between two attempts.
    """
    verdicts = [
        Verdict(holder, decide(_case(holder, seen, rules), order_of_rules))
        for holder in seen.holders
    ]
    verdicts = [_excuse(verdict, verdicts) for verdict in verdicts]
    stopped = {v.holder.process.unit for v in verdicts if v.decision.action == STOP}
    kept = frozenset(v.holder.process.pid for v in verdicts if v.decision.action not in (STOP, END))
    trees = {}
    for verdict in verdicts:
        if verdict.decision.action == END:
            root = server_root(verdict.holder.process, seen.processes)
            trees[root.pid] = Tree(root, _members(root, seen, kept | rules.login))
    running = {
        name for name in rules.companions if name in seen.services and seen.services[name].runs
    }
    others = stopped - rules.ours - rules.running - set(rules.companions)
    return ReleasePlan(
        stop=tuple(sorted(rules.running)),
        aside=tuple(sorted(others | rules.by_hand)),
        companions=tuple(sorted(running)),
        end=tuple(trees.values()),
        verdicts=tuple(verdicts),
        warnings=tuple(_waiting(seen, rules, stopped | rules.by_hand)),
    )


def server_root(process: Process, among: Mapping[int, Process]) -> Process:
    """The topmost ancestor in the same container that is itself an engine, or the process."""
    line = [p for p in ancestors(process, among) if p.container == process.container]
    engines = [p for p in (process, *line) if is_engine(p)]
    return engines[-1] if engines else process


def role_of(service: Service, processes: Mapping[int, Process]) -> str:
    """What a unit is to the engines in it: ``serves``, ``runs`` (see Case), or nothing.

    A unit whose main process is a shell that has started nothing but engines serves too.
    """
    main = processes.get(service.main_pid)
    if main is None or main.dead:
        return ""
    children = [p for p in processes.values() if p.parent == main.pid and not p.dead]
    started = is_launcher(main) and bool(children) and all(map(is_engine, children))
    if is_engine(main) or started:
        return "serves"
    return "" if is_door(main) else "runs"


def _case(holder: Holder, seen: Landscape, rules: Rules) -> Case:
    process = holder.process
    service = seen.services.get(process.unit)
    root = server_root(process, seen.processes)
    unit = role_of(service, seen.processes) if service else ""
    together = [
        other.gpus
        for other in seen.holders
        if server_root(other.process, seen.processes) == root
        or (unit == "serves" and other.process.unit == process.unit)
    ]
    family = (process, *ancestors(process, seen.processes))
    return Case(holder, family, frozenset().union(*together), unit, rules)


def _excuse(verdict: Verdict, verdicts: list[Verdict]) -> Verdict:
    """A zombie is no obstacle while somebody alive holds its GPUs, and is dealt with."""
    process = verdict.holder.process
    alive = [
        v
        for v in verdicts
        if not v.holder.process.dead and v.holder.mib != 0 and v.holder.gpus & verdict.holder.gpus
    ]
    if not process.dead or not alive:
        return verdict
    return Verdict(verdict.holder, Decision("keep", verdict.reason))


def _members(root: Process, seen: Landscape, kept: frozenset[int]) -> tuple[Process, ...]:
    below = descendants(root, seen.processes)
    spared = [p for p in below if p.pid in kept or is_protected(p)]
    return (root, *(p for p in below if p not in spared))


def _waiting(seen: Landscape, rules: Rules, stopped: set[str]) -> list[str]:
    """Units of others that serve a model, and may take the GPUs, though they hold none now."""
    holding = {holder.process.unit for holder in seen.holders}
    lines = []
    for name, service in sorted(seen.services.items()):
        if name in rules.ours or name in stopped or name in holding or name in rules.companions:
            continue
        command = Process(0, 0, 0, "S", "", service.command, service.user, "")
        if is_engine(command) and (service.runs or service.enabled == "enabled"):
            state = "runs" if service.runs else "starts at boot"
            lines.append(
                f"{name} serves a model too and {state}, but holds no GPU now: it may take one "
                "later, so stop and disable it, or give it other GPUs"
            )
    return lines
