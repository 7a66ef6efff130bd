"""Whom a release ends, as a pure function of what the host shows."""

from __future__ import annotations

from dataclasses import dataclass

from .engines import is_engine, is_protected
from .holders import Holder, Landscape
from .processes import Process, ancestors, descendants


@dataclass(frozen=True)
class Tree:
    """An engine that runs outside our units, and everything below it."""

    root: Process
    members: tuple[Process, ...]
    """The root and its descendants, and workers that hold a GPU."""


@dataclass(frozen=True)
class Foreign:
    """A holder that a release leaves alone, and why it stands in the way."""

    holder: Holder
    reason: str


@dataclass(frozen=True)
class ReleasePlan:
    """What a release does; nothing else on the host is touched."""

    stop: tuple[str, ...]
    """Units of this program that are stopped through systemd."""
    end: tuple[Tree, ...]
    foreign: tuple[Foreign, ...]

    def summary(self) -> list[str]:
        """What will be ended, a line each."""
        lines = [f"stops {unit}" for unit in self.stop]
        return lines + [f"ends pid {tree.root.pid} ({tree.root.title})" for tree in self.end]


def plan_release(
    seen: Landscape, ours: frozenset[str], running: frozenset[str], policy: str
) -> ReleasePlan:
    """Decides over every holder.

    `ours` are the units of this program; `running` those of them that are neither inactive nor
    failed: they are stopped whether or not they hold memory now, since one that crashes in a loop
    holds none between two attempts.
    """
    roots: dict[int, Process] = {}
    foreign: list[Foreign] = []
    for holder in seen.holders:
        reason = why_foreign(holder, seen, ours, policy)
        if reason is None or holder.process.unit in running:
            continue
        if reason:
            foreign.append(Foreign(holder, reason))
        else:
            root = engine_root(holder.process, seen)
            roots[root.pid] = root
    trees = tuple(Tree(root, (root, *descendants(root, seen.processes))) for root in roots.values())
    return ReleasePlan(tuple(sorted(running)), trees, tuple(foreign))


def why_foreign(holder: Holder, seen: Landscape, ours: frozenset[str], policy: str) -> str | None:
    """Why a holder stands in the way; empty when it is ended, None when it does not count."""
    process = holder.process
    if is_protected(process):
        return None
    if process.unit in ours:
        return ""
    family = [process, *ancestors(process, seen.processes)]
    engine = any(is_engine(member) for member in family)
    if not engine:
        return None if holder.mib == 0 else "it is no inference server"
    if holder.contained:
        return "it runs in a container"
    if policy == "managed":
        return "the host's policy is `managed`, which ends units of this program only"
    main = seen.processes.get(seen.main_pids.get(process.unit, 0))
    if main and is_engine(main):
        return f"{process.unit} is a service of somebody else: stop and disable it first"
    return ""


def engine_root(process: Process, seen: Landscape) -> Process:
    """The topmost ancestor that is itself an engine, or the process."""
    engines = [p for p in (process, *ancestors(process, seen.processes)) if is_engine(p)]
    return engines[-1] if engines else process
