"""Carries out one order from beginning to end: serve it, or go back to what served before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Optional

from . import install, systemd
from .attempt import Attempt, Journal
from .checks import Refused, check
from .clock import now, wall
from .gpus import Reading
from .install import Replaced
from .order import OrderError
from .phases import Phases
from .serving import is_right
from .store import Serving, Store


class Transaction:
    """One run. It ends with an outcome in its journal, whatever happens on the way."""

    def __init__(self, store: Store, journal: Journal, attempt: Attempt) -> None:
        self.store, self.journal, self.attempt = store, journal, attempt
        self.order = journal.order()
        self.phase = "stage"
        self.phases = Phases(store, self._tell)
        self.previous: Optional[Serving] = store.serving()
        self.env_digest = ""
        self.stopped_at = 0.0
        self.started = False
        self.replaced: list[Replaced] = []

    def run(self) -> None:
        """Refuses the order, serves it, or rolls back."""
        try:
            with self._phase("stage"):
                self._stage()
        except (Refused, OrderError) as reason:
            self._finish("refused", str(reason))
            return
        try:
            if not self._recover():
                self._switch()
        except Exception as problem:
            self._roll_back(f"{self.phase}: {problem}")

    def _stage(self) -> None:
        plan = check(self.store, self.order)
        self.env_digest = self.store.put_digest("env", self.order.deployment)
        was = self.previous.order.deployment if self.previous else "nothing"
        self._tell(f"{was} -> {self.order.deployment}")
        for line in plan.summary():
            self._tell(line)

    def _switch(self) -> None:
        before = Reading(())
        with self._phase("release"):
            self.stopped_at = now()
            before = self.phases.release(self.order)
        with self._phase("gate"):
            self.attempt.evidence["gate"] = self.phases.gate(self.order, before)
        with self._phase("install"):
            self.replaced = self.phases.install(self.order, self.env_digest)
        with self._phase("start"):
            self.started = True
            systemd.start(self.order.unit)
            self.phases.tidy()
        self._verify_and_commit()

    def _verify_and_commit(self) -> None:
        evidence = self.attempt.evidence
        with self._phase("ready"):
            evidence["load_seconds"] = round(self.phases.ready(self.order, self.env_digest), 1)
            if self.stopped_at:
                evidence["down_seconds"] = round(now() - self.stopped_at, 1)
        with self._phase("smoke"):
            evidence.update(self.phases.smoke(self.order, self.env_digest))
        with self._phase("commit"):
            self.phases.enable_only(self.order.unit)
            self.phases.keep_aside()
            serving = Serving(self.order, self.env_digest, self.attempt.id, wall(), evidence)
            self.store.set_serving(serving)
            install.retire_orphans(self.store)
            self.store.forget_texts()
            self.attempt.outcome = "serving"

    def _recover(self) -> bool:
        """Whether the right model, which runs but did not answer, came to serve by itself."""
        right = is_right(self.order, self.env_digest, self.previous)
        if not right or systemd.state(self.order.unit).down:
            return False
        self._tell(f"{self.order.unit} runs already: waiting for it instead of starting it again")
        # Nothing is released or replaced, so these have nothing to wait for.
        self.attempt.done += ["release", "gate", "install"]
        try:
            self._verify_and_commit()
        except Exception as problem:
            self._tell(f"{problem}: starting it again")
            self.attempt.done = ["stage"]
            return False
        return True

    def _roll_back(self, error: str) -> None:
        self.phase = "roll-back"
        self._tell(error)
        try:
            if self.started and not systemd.state(self.order.unit).down:
                systemd.stop(self.order.unit, self.order.deadlines.stop)
            systemd.call("reset-failed", self.order.unit, check=False)
            install.put_back(self.store, self.replaced)
            if self.previous is None:
                back = self.phases.put_back_aside()
                now_serves = "what others had started is back" if back else "so nothing serves now"
                self._finish("dead-end", f"{error}\nnothing of ours served before, {now_serves}")
                return
            self._restore(self.previous)
        except Exception as problem:
            self._finish("dead-end", f"{error}\nthe roll-back failed too: {problem}")
            return
        self._finish("rolled-back", error)

    def _restore(self, previous: Serving) -> None:
        order = previous.order
        self._tell(f"going back to {order.deployment}")
        if systemd.state(order.unit).down:
            self.phases.release(self.order)
            self.phases.settle(self.order.host_gpus)
        self.phases.install(order, previous.env_digest)
        self.phases.enable_only(order.unit)
        self.phases.put_back_aside()
        systemd.start(order.unit)
        self.phases.tidy()
        self.phases.ready(order, previous.env_digest)
        back = self.phases.smoke(order, previous.env_digest)
        self.attempt.evidence["back"] = {"deployment": order.deployment, **back}

    def _finish(self, outcome: str, error: str) -> None:
        self.attempt.outcome, self.attempt.error = outcome, error
        self.journal.save(self.attempt)

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        self.phase = name
        started = now()
        yield
        seconds: dict[str, Any] = self.attempt.evidence.setdefault("phases", {})
        seconds[name] = round(now() - started, 3)
        self.attempt.done.append(name)
        self.journal.save(self.attempt)

    def _tell(self, text: str) -> None:
        self.journal.tell(self.phase, text)
