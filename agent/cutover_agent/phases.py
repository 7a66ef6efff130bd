"""What the phases of a transaction do on the host; in which order is the transaction's business."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, Optional

from . import arrived, environment, hooks, install, probe, shared_memory, systemd
from .checks import running_units, survey
from .clock import Deadline, wait_for, wall
from .ending import end_trees
from .gate import Passage, wait_open, why_not_free
from .gpus import Reading, read_gpus
from .order import Order
from .release_plan import ReleasePlan, Tree, plan_release
from .serving import NotServing, await_ready, key_of
from .store import Store

SETTLE_SECONDS = 60
"""A roll-back waits this long at most for memory that does not go away, then starts anyway."""
STEADY_SECONDS = 2
"""Memory that has not changed for this long is not on its way out."""


class GateClosed(RuntimeError):
    """Not every GPU of the host reports 0 MiB."""


class Phases:
    """The effects of one transaction; `tell` takes a line for the event log."""

    def __init__(self, store: Store, tell: Callable[[str], None]) -> None:
        self.store, self.tell = store, tell

    def release(self, order: Order) -> Reading:
        """Ends what holds the GPUs and clears what it left; returns the reading before that."""
        seen = survey()
        running = running_units(self.store)
        plan = plan_release(seen, self.store.units(), running, order.policy)
        self._stop(plan, order.deadlines.stop)
        swept = shared_memory.sweep(wall())
        if swept.count:
            self.tell(f"removed {swept.count} stale segments, {swept.size >> 20} MiB")
        return seen.reading

    def _stop(self, plan: ReleasePlan, seconds: int) -> None:
        for unit in plan.stop:
            self.tell(f"stopping {unit}")
            self.tell(systemd.stop(unit, seconds) or f"{unit} is stopped")
        if plan.end:
            self._end(plan.end, seconds)

    def _end(self, trees: Sequence[Tree], seconds: int) -> None:
        for tree in trees:
            self.tell(f"ending pid {tree.root.pid} ({tree.root.title})")
        ended = end_trees(trees, seconds)
        if ended.killed:
            self.tell(f"killed {len(ended.killed)} processes that did not end within {seconds} s")
        if ended.alive:
            names = ", ".join(f"pid {p.pid} ({p.title}), state {p.state}" for p in ended.alive)
            raise systemd.Unkillable(f"even SIGKILL does not end {names}: reset the GPU or reboot")

    def gate(self, order: Order, before: Reading) -> dict[str, Any]:
        """Waits for 0 MiB on every GPU of the host; returns the proof or raises GateClosed."""
        last = ""

        def tell_changes(text: str) -> None:
            nonlocal last
            if text != last:
                last = text
                self.tell(text)

        passage = wait_open(read_gpus, order.host_gpus, order.deadlines.gate, tell_changes)
        if not passage.verdict.open:
            holders = "; ".join(holder.describe() for holder in survey().holders)
            seen = f": {holders}" if holders else ", and no process is seen that holds it"
            raise GateClosed(f"not every GPU reports 0 MiB ({passage.verdict.reason}){seen}")
        proof = gate_proof(passage, before)
        self.tell(proof["line"])
        return proof

    def before_stop(self, order: Order) -> None:
        """Lets the host's owner prepare; raises Refused where that fails."""
        hooks.before_stop(order, self.tell)

    def after_commit(self, order: Order) -> None:
        """Tells the host's owner that the new model serves."""
        hooks.afterwards("after_commit", order, self.tell)

    def after_rollback(self, order: Order) -> None:
        """Tells the host's owner that the new model does not serve."""
        hooks.afterwards("after_rollback", order, self.tell)

    def install(
        self,
        order: Order,
        env_digest: str,
        note: Callable[[list[install.Replaced]], None] = lambda replaced: None,
    ) -> None:
        """Replaces the unit and its environment; `note` gets what was there, before the first."""
        replaced = install.install(
            self.store, order.deployment, order.unit, order.unit_digest, env_digest, note
        )
        self.tell(f"{order.unit} is {'in place' if replaced else 'unchanged'}")

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
        """Compares the environment of every process that holds a GPU with the declared one."""
        seen = arrived.look(order)
        for line in (*seen.lines, *(f"warning: {fault}" for fault in seen.faults)):
            self.tell(line)
        if seen.faults and order.strict_env:
            raise NotServing(f"{seen.lines[0]}: {seen.faults[0]} (strict_env)")
        return seen.evidence()

    def smoke(self, order: Order, env_digest: str) -> dict[str, Any]:
        """Asks the model a question; returns its answer and speed."""
        key = key_of(self.store, order, env_digest)
        for _ in range(order.probe.requests):
            answer = probe.smoke(order.probe, key, order.deadlines.smoke)
        self.tell(f"{answer.text.strip()[:80]!r}, {answer.tokens_per_second} tokens/s")
        return {"answer": answer.text[:200], "tokens_per_second": answer.tokens_per_second}

    def enable_only(self, unit: Optional[str]) -> None:
        """Makes one unit of this program start on boot and no other; None: none at all."""
        for other in sorted(self.store.units() - {unit}):
            if systemd.state(other).enabled == "enabled":
                systemd.call("disable", other)
        if unit:
            systemd.call("enable", unit)

    def reading_problem(self) -> str:
        """Why the driver does not answer; empty when it does."""
        return read_gpus().problem

    def settle(self, host_gpus: int) -> None:
        """Gives memory a while to go, but never keeps a model from serving."""
        seen, still = read_gpus().total_mib, Deadline(STEADY_SECONDS)

        def settled() -> bool:
            nonlocal seen, still
            reading = read_gpus()
            if reading.total_mib != seen:
                seen, still = reading.total_mib, Deadline(STEADY_SECONDS)
            return still.passed or not why_not_free(reading, host_gpus)

        wait_for(settled, Deadline(SETTLE_SECONDS))


def gate_proof(passage: Passage, before: Reading) -> dict[str, Any]:
    """The gate's result for people and programs; memory in MiB."""
    was = {gpu.uuid: gpu.used_mib for gpu in before.gpus}
    free = sum(1 for gpu in passage.last.gpus if not gpu.used_mib)
    return {
        "line": (
            f"{free} of {len(passage.last.gpus)} GPUs report 0 MiB "
            f"(before: {before.total_mib} MiB), {passage.samples} readings, "
            f"{passage.seconds:.2f} s"
        ),
        "seconds": round(passage.seconds, 3),
        "gpus": [
            {
                "index": g.index,
                "uuid": g.uuid,
                "before_mib": was.get(g.uuid),
                "after_mib": g.used_mib,
            }
            for g in passage.last.gpus
        ],
    }
