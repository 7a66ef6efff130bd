"""What the phases of a transaction do on the host; in which order is the transaction's business."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, Optional

from . import (
    arrived,
    aside,
    burst,
    containers,
    drain,
    environment,
    hooks,
    install,
    stopping,
    systemd,
    trial,
    views,
)
from .clock import Deadline, now, wait_for, wall
from .ending import end_trees, patience, why_alive
from .gate import gate_proof, wait_open, why_not_free
from .gpus import Reading
from .holders import Landscape
from .manifest import drop_ins_by_hand
from .moments import Moments
from .nvidia_smi import read_gpus
from .order import Order
from .refusal import GateClosed, why_closed
from .release_plan import ReleasePlan, Tree, plan_release
from .scope import Scope, scope_at_hand
from .serving import NotServing, await_ready, key_of
from .shared_memory import free_share
from .store import Serving, Store
from .survey import look_again, plan_for, rules_for, survey, uids_of
from .sweep import Sweep

STEADY_SECONDS = 2
"""Memory that has not changed for this long is not on its way out."""
ROUNDS = 3
"""How often a release looks again for servers that were born while it ended others."""
LITTLE_SHARED_MEMORY = 0.05


class Phases:
    """The effects of one transaction; `tell` takes a line for the event log, and `at` the moments
    that only show here.
    """

    def __init__(
        self, store: Store, tell: Callable[[str], None], at: Optional[Moments] = None
    ) -> None:
        self.store, self.tell, self.at = store, tell, at or Moments()
        self.lent: frozenset[str] = frozenset()
        self.sweep: Optional[Sweep] = None
        self.prepared: Optional[install.Prepared] = None

    def prepare(
        self,
        order: Order,
        env_digest: str,
        note: Callable[[list[install.Replaced]], None] = lambda replaced: None,
        swept: bool = False,
    ) -> None:
        """Does ahead what else would be done while nothing serves.

        `note` gets what will be replaced, before anything is written. `swept` says whether a
        release and a gate come before the start.
        """
        views.make(order.checkpoint, order.files)
        theirs = drop_ins_by_hand(self.store, order.unit)
        self.prepared = install.prepare(
            self.store, order.deployment, order.unit, order.unit_digest, env_digest, note, theirs
        )
        trial.begin(order.unit, self.store.text(order.unit_digest) if swept else "")

    def release(self, order: Order) -> Reading:
        """Ends what holds the GPUs and clears what it left; returns the reading before that."""
        seen = survey()
        scope = scope_at_hand(order, seen.reading)
        rules = rules_for(self.store, order, scope, seen)
        plan, before = plan_release(seen, rules), seen.reading
        self.lent = frozenset(g.uuid for g in seen.reading.gpus if g.index in plan.lent)
        uids = uids_of(self.store, plan, seen)
        self._stop(plan, order, seen)
        deadline = Deadline(order.deadlines.release)
        for _ in range(ROUNDS):
            seen = look_again(seen)
            trees = plan_release(seen, rules.all_stopped()).end
            trees += stopping.outliving(plan.stop, seen.processes)
            kill = order.deadlines.kill
            if not trees or deadline.left < kill:
                break
            self._end(trees, patience(order.deadlines.stop, deadline.left, kill), kill)
        self.sweep = Sweep(uids, wall())
        self.sweep.begin()
        return before

    def _stop(self, plan: ReleasePlan, order: Order, seen: Landscape) -> None:
        deadline = Deadline(order.deadlines.stop)
        others = [seen.services[unit] for unit in plan.aside + plan.companions]
        if others:
            aside.remember(self.store, others, order.companions)
            aside.hold(plan.aside)
        for unit in plan.units:
            self.tell(f"stopping {unit}")
        self.at.stop = now()
        stopping.begin(plan.units)
        if plan.end:
            for line in containers.stop(order.also_end, order.deadlines.stop):
                self.tell(line)
            self._end(plan.end, order.deadlines.stop, order.deadlines.kill)
        mine = [p for p in seen.processes.values() if p.unit in plan.units]
        if mine and stopping.await_processes(plan.units, mine, deadline):
            self.at.gone = now()
        for line in stopping.finish(plan.units, deadline, order.deadlines.kill):
            self.tell(line)
            self.at.gone = self.at.gone or now()

    def _end(self, trees: Sequence[Tree], seconds: float, kill: float) -> None:
        for tree in trees:
            self.tell(f"ending pid {tree.root.pid} ({tree.root.title})")
        ended = end_trees(trees, seconds, kill)
        self.at.gone = now()
        if ended.killed:
            count, time = len(ended.killed), f"{seconds:.0f} s"
            self.tell(f"killed {count} processes that did not end within {time}")
        if ended.alive:
            names = "; ".join(why_alive(process) for process in ended.alive)
            raise systemd.Unkillable(f"even SIGKILL does not end {names}")

    def gate(self, order: Order, before: Reading) -> dict[str, Any]:
        """Waits until the GPUs are free; returns the proof or raises GateClosed."""
        last = ""

        def tell_changes(text: str) -> None:
            nonlocal last
            if text != last:
                last = text
                self.tell(text)

        scope = scope_at_hand(order, read_gpus() if before.problem else before)
        passage = wait_open(read_gpus, scope, order.deadlines.gate, tell_changes, self.lent)
        if self.sweep:
            self.sweep.pause()
        if not passage.verdict.open:
            seen = survey()
            raise GateClosed(
                why_closed(passage, scope, plan_for(self.store, order, scope, seen), seen)
            )
        proof = gate_proof(passage, scope, before)
        self.tell(proof["line"])
        aside.restart_companions(self.store, self.tell)
        return proof

    def tidy(self) -> None:
        """Sweeps what the gate left no time for; never a reason against a model."""
        if self.sweep:
            summary = self.sweep.finish().summary()
            self.sweep = None
            if summary:
                self.tell(summary)
            if free_share() < LITTLE_SHARED_MEMORY:
                self.tell(f"WARNING: only {free_share():.0%} of /dev/shm is free")

    def keep_aside(self) -> None:
        """Leaves the units of others stopped that held the GPUs."""
        aside.keep(self.store, self.tell)

    def put_back_aside(self, start: bool = True) -> bool:
        """Enables the units of others again, and starts them; whether there were any."""
        return aside.put_back(self.store, self.tell, start)

    def before_stop(self, order: Order, previous: Optional[Serving]) -> None:
        """Lets the host's owner prepare, and requests end; raises Refused where the hook fails."""
        hooks.before_stop(order, self.tell)
        if previous:
            drain.drain(previous.order.probe.url, previous.order.deadlines.drain, self.tell)

    def after_commit(self, order: Order) -> None:
        """Tells the host's owner that the new model serves."""
        hooks.afterwards("after_commit", order, self.tell)

    def after_rollback(self, order: Order) -> None:
        """Tells the host's owner that the new model does not serve."""
        hooks.afterwards("after_rollback", order, self.tell)

    def install(self, order: Order) -> None:
        """Replaces the unit and its environment by what was prepared."""
        assert self.prepared
        install.put(self.store, self.prepared)
        self.tell(f"{order.unit} is {'in place' if self.prepared.replaced else 'unchanged'}")

    def ready(self, order: Order, env_digest: str, spent: float = 0.0) -> float:
        """Waits until the model is listed; returns the seconds since the start.

        `spent` of the load deadline's seconds are over already.
        """
        secret = self.store.text(env_digest)
        key = key_of(self.store, order, env_digest)
        seconds = await_ready(
            order, key, self.tell, lambda text: environment.mask(secret, text), spent
        )
        self.tell(f"{order.deployment} is ready after {seconds:.1f} s")
        return seconds

    def arrived(self, order: Order) -> dict[str, Any]:
        """Compares the environment of every process with the declared one, for the evidence."""
        seen = arrived.look(order)
        for line in (*seen.lines, *(f"warning: {fault}" for fault in seen.faults)):
            self.tell(line)
        if seen.faults and order.strict_env:
            raise NotServing(f"{seen.lines[0]}: {seen.faults[0]} (strict_env)")
        return seen.evidence()

    def smoke(self, order: Order, env_digest: str) -> dict[str, Any]:
        """Asks the model a question; returns its answer and speed."""
        key = key_of(self.store, order, env_digest)
        answer = burst.ask(order.probe, key, order.deadlines.smoke)
        said = environment.mask(self.store.text(env_digest), answer.text)
        self.tell(f"{said.strip()[:80]!r}, {answer.tokens_per_second} tokens/s")
        doubt = burst.warning(order.probe, answer)
        if doubt:
            self.tell(f"warning: {doubt}")
        found = {"answer": said[:200], "tokens_per_second": answer.tokens_per_second}
        return {**found, "doubt": doubt} if doubt else found

    def enable_only(self, unit: Optional[str]) -> None:
        """Makes one unit of this program start on boot and no other; None: none at all."""
        for other in sorted(self.store.units() - {unit}):
            theirs = install.by_hand(self.store, other)
            if not theirs and systemd.state(other).enabled == "enabled":
                systemd.call("disable", other)
        if unit:
            systemd.call("enable", unit)

    def reading_problem(self) -> str:
        """Why the driver does not answer; empty when it does."""
        return read_gpus().problem

    def settle(self, order: Order) -> None:
        """Gives memory a while to go, but never keeps a model from serving."""
        scope = Scope("", order.host_gpus, ())
        seen, still = read_gpus().total_mib, Deadline(STEADY_SECONDS)

        def settled() -> bool:
            nonlocal seen, still
            reading = read_gpus()
            if reading.total_mib != seen:
                seen, still = reading.total_mib, Deadline(STEADY_SECONDS)
            return still.passed or not why_not_free(reading, scope)

        wait_for(settled, Deadline(order.deadlines.settle))
