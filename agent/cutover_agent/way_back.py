"""From wherever a transaction is, back to the model that served before, verified."""

from __future__ import annotations

from typing import Callable, Optional

from . import install, systemd, trial
from .attempt import RESTORE, UNDO
from .order import Order
from .phases import Phases
from .progress import Progress
from .store import Serving, Store

TRIES = 2
"""How often a way back is tried, over all boots, before it is a dead end."""

UNKILLABLE = "a process that cannot be killed"
NO_DRIVER = "a driver that no longer answers"
FAILED = "a roll-back that failed too"
NOTHING = "nothing to go back to"


class WayBack:
    """Every step of it can be done again: after a crash recovery goes the same way."""

    def __init__(self, store: Store, progress: Progress, phases: Phases) -> None:
        self.store, self.progress, self.phases = store, progress, phases
        self.attempt, self.tell = progress.attempt, progress.tell
        self.order = progress.journal.order()
        self.previous: Optional[Serving] = progress.journal.previous()

    def go(self, error: str) -> None:
        """Ends the transaction as rolled back, or at one of the dead ends."""
        self.attempt.error = self.attempt.error or self.progress.masked(error)
        self.attempt.outcome = ""  # of a commit that could not be recorded
        self.store.spend_reserve()
        try:
            if UNDO not in self.attempt.done:
                with self.progress.phase(UNDO):
                    self.tell(self.attempt.error)
                    self._undo()
            self._return()
        except systemd.Unkillable as problem:
            self._dead_end(UNKILLABLE, str(problem))

    def _undo(self) -> None:
        order, previous = self.order, self.previous
        self.store.set_serving(None if previous is None or previous.foreign else previous)
        if "start" in self.attempt.begun and not systemd.state(order.unit).down:
            self.tell(f"stopping {order.unit}")
            self._stop(order)
        trial.end(order.unit)
        systemd.call("reset-failed", order.unit, check=False)
        self.phases.enable_only(None)
        self._try(lambda: install.put_back(self.store, self.progress.journal.replaced()))

    def _stop(self, order: Order) -> None:
        systemd.stop(order.unit, order.deadlines.stop, order.deadlines.kill)

    def _try(self, act: Callable[[], object]) -> None:
        """Does what helps, but must not keep the old model from serving."""
        try:
            act()
        except systemd.Unkillable:
            raise
        except Exception as problem:
            self.tell(f"{problem}: going on all the same")

    def _return(self) -> None:
        if self.previous is None:
            others = self.phases.put_back_aside()
            now_serves = "what others had started is back" if others else "so nothing serves now"
            self._dead_end(NOTHING, f"nothing of ours served before, {now_serves}")
            return
        problem = "it was cut off twice"
        while self.attempt.tries < TRIES:
            self.attempt.tries += 1
            try:
                with self.progress.phase(RESTORE):
                    self._restore(self.previous)
            except systemd.Unkillable:
                raise
            except Exception as failure:
                if systemd.shutting_down():
                    raise  # the next boot goes on from here
                problem = str(failure)
                self.tell(problem)
                if self.attempt.tries < TRIES:
                    self._stop(self.previous.order)
            else:
                self.phases.after_rollback(self.order)
                self.progress.end("rolled-back", self.attempt.error)
                return
        unread = self.phases.reading_problem()
        self._dead_end(NO_DRIVER if unread else FAILED, unread or problem)

    def _restore(self, previous: Serving) -> None:
        order = previous.order
        self.tell(f"going back to {order.deployment}")
        if systemd.state(order.unit).down:
            self._try(lambda: self.phases.release(self.order))
            self.phases.settle(self.order)
            if not previous.foreign:
                self.phases.prepare(order, previous.env_digest)
                self.phases.install(order)
        self._try(self.phases.put_back_aside)
        if systemd.state(order.unit).down:
            trial.begin(order.unit)
            systemd.start(order.unit)
        self.phases.tidy()
        self.phases.ready(order, previous.env_digest)
        back = self.phases.smoke(order, previous.env_digest)
        trial.end(order.unit)
        self.phases.enable_only(None if previous.foreign else order.unit)
        ours = not previous.foreign and order.unit != install.CAPTURED
        self.attempt.evidence["back"] = {"deployment": order.deployment, "ours": ours, **back}

    def _dead_end(self, name: str, why: str) -> None:
        """Nothing more is tried; what served before starts at the next boot."""
        if self.previous:
            trial.end(self.previous.order.unit)
            if self.previous.foreign:
                self._try(lambda: self.phases.put_back_aside(start=False))
            else:
                self.phases.enable_only(self.previous.order.unit)
        self.attempt.dead_end = name
        lines = [self.attempt.error, f"dead end: {name}: {why}"]
        self.phases.after_rollback(self.order)
        self.progress.end("dead-end", "\n".join(lines))
