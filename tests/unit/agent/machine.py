"""A host of folders and dictionaries, on which an agent can die at any file operation."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from cutover_agent import (
    arrived,
    environment,
    install,
    listener,
    lock,
    phases,
    probe,
    recovery,
    serving,
    systemd,
    transaction,
    trial,
    views,
)
from cutover_agent.attempt import Attempt, Journal
from cutover_agent.gpus import Gpu, Reading
from cutover_agent.holders import Landscape, Service
from cutover_agent.order import Order, Probe
from cutover_agent.probe import Answer
from cutover_agent.release_plan import ReleasePlan
from cutover_agent.store import Record, Serving, Store
from cutover_agent.sweep import Sweep, Swept
from cutover_agent.systemd import UnitState

FREE = Reading(tuple(Gpu(i, f"GPU-{i}", 0) for i in range(8)))

USED = Reading(tuple(Gpu(i, f"GPU-{i}", 72500) for i in range(8)))


class NoSweep(Sweep):
    """Finds nothing, and takes no time."""

    def __init__(self) -> None:
        super().__init__((), 0.0)

    def begin(self) -> None:
        self.first = None

    def pause(self) -> None:
        self.first = None

    def finish(self) -> Swept:
        return self.swept


class Died(BaseException):
    """The agent is gone; nothing of it may run any more."""


class Machine:
    """What outlives the agent: the disk, and systemd with the units that it runs."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        patch.undo()  # of the machine before this one
        patch.setattr(time, "sleep", lambda _: None)
        self.root, self.left, self.acts = root, -1, 0
        self.full_after = -1
        """After so many operations the disk is full, until a reserve is given up."""
        self.dies_at = ""
        """The call of systemctl that the agent does not survive."""
        self.running: dict[str, str] = {}
        self.enabled: set[str] = set()
        self.loaded: dict[str, str] = {}
        self.broken: set[str] = set()
        """Unit texts that never serve."""
        self.boot_id = "boot-0"
        for name in ("units", "run", "etc", "lock"):
            (root / name).mkdir(parents=True)
        self.store = Store(root / "store")
        self.store.prepare()
        patch.setattr(install, "UNITS", root / "units")
        patch.setattr(environment, "FOLDER", root / "etc")
        patch.setattr(trial, "RUNTIME", root / "run")
        patch.setattr(lock, "FOLDER", root / "lock")
        for module in (recovery, "cutover_agent.attempt"):
            target = (
                f"{module}.boot_id" if isinstance(module, str) else "cutover_agent.recovery.boot_id"
            )
            patch.setattr(target, lambda: self.boot_id)
        self._be_systemd(patch)
        self._be_a_host(patch)
        self._count_operations(patch)

    # What a test does with it.

    def deployment(self, name: str, unit: str, text: str) -> tuple[Order, str]:
        """Puts a deployment's texts into the store; its order, and its environment's digest."""
        digest = self.store.keep(text)
        env = self.store.keep(f"NAME={name}\n")
        self.store.own(Record(f"unit-{name}", "unit", name, unit, digest))
        self.store.own(Record(f"env-{name}", "env", name, unit, env))
        asked = Probe("http://127.0.0.1:8000", name)
        gpus = tuple(range(8))
        return Order("box", 8, name, unit, digest, gpus, "/models/m", asked), env

    def serve(self, order: Order, env: str) -> None:
        """Makes an order what serves now, enabled and committed."""
        install.install(self.store, order.deployment, order.unit, order.unit_digest, env)
        systemd.call("enable", order.unit)
        systemd.start(order.unit)
        self.store.set_serving(Serving(order, env, "before", 1.0))

    def die_after(self, operations: int) -> None:
        """Lets the agent do so many operations more, and no other."""
        self.left, self.acts = operations, 0

    def live(self) -> None:
        """A new agent: nothing stops it."""
        self.left = -1

    def power_cut(self) -> None:
        """Everything that runs is gone, and a boot starts what is enabled."""
        self.boot_id += "+"
        self.running.clear()
        shutil.rmtree(self.root / "run")
        (self.root / "run").mkdir()
        self._reload()
        for unit in self.enabled:
            self._start(unit)

    def files(self) -> dict[str, str]:
        """What systemd reads: units and environments, by name."""
        found = [*(self.root / "units").iterdir(), *(self.root / "etc").iterdir()]
        return {path.name: path.read_text() for path in found if not path.name.startswith(".")}

    def begin(self, order: Order, env: str) -> tuple[Journal, Attempt]:
        """A transaction's record, as the first step leaves it."""
        journal = Journal(self.store, "t")
        return journal, journal.create(order, env, "me")

    # What the agent finds.

    def _be_systemd(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(systemd, "call", self._call)
        patch.setattr(systemd, "states", lambda units: {u: self._state(u) for u in units})
        patch.setattr(systemd, "start", lambda unit: self._call("start", unit))
        patch.setattr(systemd, "stop", lambda unit, *_: self._call("stop", unit))
        patch.setattr(systemd, "journal", lambda *_: [])
        patch.setattr(systemd, "shutting_down", lambda: False)

    def _be_a_host(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(transaction, "check", lambda *_, **__: ReleasePlan())
        patch.setattr(phases, "survey", self._survey)
        patch.setattr(phases, "look_again", lambda _: Landscape({}, (), FREE, {}))
        patch.setattr(phases, "Sweep", lambda *_: NoSweep())
        patch.setattr(arrived, "look", lambda _: arrived.Comparison((), ()))
        patch.setattr(views, "retire", lambda _: None)
        patch.setattr(phases, "read_gpus", lambda: FREE)
        patch.setattr(serving, "read_gpus", lambda: USED)
        patch.setattr(listener, "stranger", lambda *_: "")
        patch.setattr(probe, "ready", lambda asked, _: bool(self.running))
        patch.setattr(probe, "smoke", lambda *_: Answer("Paris", 1, 1.0))

    def _call(self, verb: str, *words: str, check: bool = True) -> str:
        self._operation()
        unit = words[-1] if words else ""
        if f"{verb} {unit}" == self.dies_at:
            raise Died
        if verb == "daemon-reload":
            self._reload()
        elif verb == "enable":
            self.enabled.add(unit)
        elif verb == "disable":
            self.enabled.discard(unit)
        elif verb == "start":
            self._start(unit)
        elif verb == "stop":
            self.running.pop(unit, None)
        return ""

    def _start(self, unit: str) -> None:
        if unit not in self.running and self.loaded[unit] not in self.broken:
            self.running[unit] = self.loaded[unit]

    def _reload(self) -> None:
        self.loaded = {path.name: path.read_text() for path in (self.root / "units").iterdir()}

    def _state(self, unit: str) -> UnitState:
        active = "active" if unit in self.running else "inactive"
        enabled = "enabled" if unit in self.enabled else "disabled"
        return UnitState(active, "running", 1, 0, "", enabled, "success")

    # How it dies.

    def _survey(self) -> Landscape:
        services = {unit: Service(unit, active="active") for unit in self.running}
        return Landscape({}, (), FREE, services)

    def _count_operations(self, patch: pytest.MonkeyPatch) -> None:
        for name in ("open", "rename", "unlink", "mkdir", "rmdir"):
            patch.setattr(os, name, self._counted(name, getattr(os, name)))
        patch.setattr(os, "fsync", lambda _: None)

    def _counted(self, name: str, act: Any) -> Any:
        def counted(*arguments: Any, **options: Any) -> Any:
            self._operation()
            if name == "open" and arguments[1] & os.O_CREAT and 0 <= self.full_after < self.acts:
                raise OSError(28, "No space left on device")
            done = act(*arguments, **options)
            if name == "unlink" and Path(arguments[0]).name.startswith("reserve"):
                self.full_after = -1
            return done

        return counted

    def _operation(self) -> None:
        self.acts += 1
        if self.left >= 0 and self.acts > self.left:
            raise Died
