"""Carries out one order from beginning to end: serve it, or go back to what served before."""

from __future__ import annotations

from contextlib import suppress
from typing import Callable

from . import install, systemd, trial, views, warm_report
from .attempt import Attempt, Journal
from .checks import check
from .clock import now, wall
from .engine_log import load_parts
from .gpus import Reading
from .moments import Moments, describe, refine
from .phases import Phases
from .previous import way_back
from .progress import Progress
from .serving import is_right
from .store import Serving, Store
from .way_back import WayBack

LOG_LINES = 10_000
"""Of an engine's log: a load writes some hundred lines for each worker at most."""


class Transaction:
    """One run. It ends with an outcome in its journal, whatever happens on the way."""

    def __init__(self, store: Store, journal: Journal, attempt: Attempt) -> None:
        self.store, self.journal, self.attempt = store, journal, attempt
        self.order = journal.order()
        self.progress = Progress(journal, attempt)
        self.at = Moments()
        self.phases = Phases(store, self.progress.tell, self.at)
        self.env_digest = attempt.env_digest

    def run(self) -> None:
        """Refuses the order, serves it, or rolls back."""
        try:
            with self.progress.phase("stage"):
                self._stage()
            with self.progress.phase("drain"):
                self.phases.before_stop(self.order, self.journal.previous())
        except Exception as reason:
            if not systemd.shutting_down():
                self.progress.end("refused", str(reason))
            return
        self._or_back(self._serve)

    def go_on(self) -> None:
        """Finishes what was begun: the unit is started unless it runs, verified and committed."""
        self._or_back(self._resume)

    def go_back(self, error: str) -> None:
        """Takes the way back; does nothing while the host is on its way off."""
        try:
            if not systemd.shutting_down():
                WayBack(self.store, self.progress, self.phases).go(error)
        except Exception:
            if not systemd.shutting_down():
                raise

    def _or_back(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as problem:
            self.go_back(f"{self.attempt.phase}: {problem}")

    def _stage(self) -> None:
        plan = check(self.store, self.order, self.store.text(self.order.unit_digest))
        read_ahead = warm_report.take(self.store, self.order)
        if read_ahead:
            self.attempt.evidence["warm"] = read_ahead
            self.progress.tell(f"{self.order.deployment}: {read_ahead['line']}")
        self.store.reserve()
        previous, back = way_back(self.store, self.order, plan)
        self.journal.set_previous(previous)
        was = previous.order.deployment if previous else "nothing"
        self.progress.tell(f"{was} -> {self.order.deployment}")
        for line in (*plan.summary(), back):
            self.progress.tell(line)

    def _serve(self) -> None:
        if not self._already_loading():
            self._switch()

    def _switch(self) -> None:
        before = Reading(())
        with self.progress.phase("release"):
            self.at.began = now()
            self.phases.enable_only(None)
            note = self.journal.set_replaced
            self.phases.prepare(self.order, self.env_digest, note, swept=True)
            before = self.phases.release(self.order)
            self.at.released = now()
        with self.progress.phase("gate"):
            self.attempt.evidence["gate"] = self.phases.gate(self.order, before)
        with self.progress.phase("install"):
            self.phases.install(self.order)
            self.at.installed = now()
        with self.progress.phase("start"):
            self._start()
        self._verify_and_commit()

    def _start(self) -> None:
        self.attempt.loading_since = now()
        self.progress.save()
        systemd.start(self.order.unit)
        self.phases.tidy()

    def _verify_and_commit(self) -> None:
        evidence = self.attempt.evidence
        with self.progress.phase("ready"):
            spent = now() - self.attempt.loading_since if self.attempt.loading_since else 0.0
            seconds = self.phases.ready(self.order, self.env_digest, spent)
            self.at.ready = now()
            evidence["load_seconds"] = round(seconds, 1)
            if self.at.stop:
                evidence["down_seconds"] = round(self.at.ready - self.at.stop, 1)
            evidence.update(self.phases.arrived(self.order))
        with self.progress.phase("smoke"):
            evidence.update(self.phases.smoke(self.order, self.env_digest))
        with suppress(systemd.SystemdError):
            self._measure()
        with self.progress.phase("commit"):
            self._commit()
            self.attempt.outcome = "serving"

    def _measure(self) -> None:
        """Keeps how long each part took, by the agent's clock and by the engine's own log."""
        evidence, unit = self.attempt.evidence, self.order.unit
        self.at.executed = systemd.executed_at(unit)
        lines = systemd.journal(unit, systemd.state(unit).invocation, LOG_LINES)
        evidence["phases"] = refine(evidence["phases"], self.at, load_parts(lines))
        if self.at.gap:
            evidence["gap_seconds"] = round(self.at.gap, 3)
        self.progress.tell(describe(evidence["phases"]))

    def _commit(self) -> None:
        evidence = self.attempt.evidence
        serving = Serving(self.order, self.env_digest, self.attempt.id, wall(), evidence)
        self.store.set_before(self.journal.previous())
        self.store.set_serving(serving)
        self.phases.enable_only(self.order.unit)
        self.phases.keep_aside()
        trial.end(self.order.unit)
        install.retire_orphans(self.store)
        was = self.journal.previous()
        views.retire({self.order.files.view, was.order.files.view if was else ""})
        self.store.forget_texts({file.digest for file in self.journal.replaced()})
        self.phases.after_commit(self.order)

    def _resume(self) -> None:
        if systemd.state(self.order.unit).down:
            trial.begin(self.order.unit)
            self._start()
        self._verify_and_commit()

    def _already_loading(self) -> bool:
        """Whether the right model, which runs but did not answer, came to serve by itself."""
        right = is_right(self.order, self.env_digest, self.journal.previous())
        if not right or systemd.state(self.order.unit).down:
            return False
        self.progress.tell(f"{self.order.unit} runs already: waiting for it instead of starting it")
        # Nothing is released or replaced, so these have nothing to wait for.
        self.attempt.done += ["release", "gate", "install"]
        try:
            self._verify_and_commit()
        except Exception as problem:
            self.progress.tell(f"{problem}: starting it again")
            self.attempt.begun, self.attempt.done = ["stage", "drain"], ["stage", "drain"]
            return False
        return True
