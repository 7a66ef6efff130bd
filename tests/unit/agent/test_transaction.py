"""A transaction ends with an outcome in its journal, whatever happens on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cutover_agent import install, systemd, transaction, trial
from cutover_agent.attempt import PHASES, UNDO, Attempt, Journal
from cutover_agent.checks import Refused
from cutover_agent.order import Order
from cutover_agent.release_plan import ReleasePlan
from cutover_agent.store import Record, Serving, Store
from cutover_agent.systemd import UnitState
from cutover_agent.transaction import Transaction
from tests.unit.agent.samples import order, reading

DOWN = UnitState("inactive", "dead", 0, 0, "", "disabled", "success")
ANSWER = {"answer": "Paris", "tokens_per_second": 9.0}
OLD = order(deployment="old", unit="old.service")


class Recorder:
    """Phases that do nothing but tell what was asked of them, and fail where told to."""

    def __init__(self, fails: dict[str, Exception]) -> None:
        self.fails, self.asked = fails, list[str]()

    def __getattr__(self, name: str) -> Any:
        def phase(*arguments: Any, **options: Any) -> Any:
            if not arguments:
                self.asked += [f"{name} {options}"] * bool(options)
                return ""
            about = arguments[0].deployment if isinstance(arguments[0], Order) else arguments[0]
            self.asked.append(f"{name} {about}")
            if f"{name} {about}" in self.fails:
                raise self.fails[f"{name} {about}"]
            results: dict[str, Any] = {
                "release": reading(70000),
                "gate": {"line": "8 of 8"},
                "install": [],
                "ready": 1.0,
                "arrived": {},
                "smoke": ANSWER,
            }
            return results.get(name)

        return phase


class Bench:
    """A transaction whose effects are recorded."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store, self.patch = Store(root), monkeypatch
        self.store.prepare()
        self.store.own(Record("env", "env", "small", "u", self.store.keep("KEY=1\n")))
        (root / "texts" / order().unit_digest).write_text("[Unit]\n")
        self.journal = Journal(self.store, "t")
        self.check: Exception | None = None
        monkeypatch.setattr(transaction, "check", self._check)
        monkeypatch.setattr(systemd, "call", lambda *_, check=True: "")
        monkeypatch.setattr(systemd, "state", lambda _: DOWN)
        monkeypatch.setattr(systemd, "start", lambda _: None)
        monkeypatch.setattr(trial, "RUNTIME", root / "run")
        monkeypatch.setattr(install, "retire_orphans", lambda _: [])

    def _check(self, *_: Any) -> ReleasePlan:
        if self.check:
            raise self.check
        return ReleasePlan((), (), ())

    def serving(self, was: Order) -> None:
        self.store.set_serving(Serving(was, "e" * 64, "before", 1.0))

    def run(self, **fails: Exception) -> tuple[Attempt, list[str]]:
        made = Transaction(self.store, self.journal, self.journal.create(order()))
        named = {name.replace("__", " "): problem for name, problem in fails.items()}
        recorder = Recorder(named)
        made.phases = recorder  # type: ignore[assignment]
        made.run()
        attempt = self.journal.load()
        assert attempt
        return attempt, recorder.asked


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


def test_a_good_order_goes_through_every_phase_and_is_committed(bench: Bench) -> None:
    attempt, asked = bench.run()
    assert (attempt.outcome, tuple(attempt.done)) == ("serving", PHASES)
    assert [name.split()[0] for name in asked] == [
        "before_stop",
        "enable_only",
        "prepare",
        "release",
        "gate",
        "install",
        "ready",
        "arrived",
        "smoke",
        "enable_only",
        "after_commit",
    ]
    committed = bench.store.serving()
    assert committed
    assert (committed.order, committed.transaction) == (order(), "t")


@pytest.mark.parametrize(
    "problem",
    [Refused("no"), RuntimeError("unexpected"), OSError(2, "systemd-analyze"), ValueError("bad")],
    ids=repr,
)
def test_whatever_goes_wrong_before_the_stop_is_a_refusal(bench: Bench, problem: Exception) -> None:
    bench.check = problem
    attempt, asked = bench.run()
    assert (attempt.outcome, asked) == ("refused", [])
    assert str(problem) in attempt.error


@pytest.mark.parametrize("phase", ["release", "gate", "install", "ready", "smoke"])
def test_a_phase_that_fails_brings_the_old_model_back(bench: Bench, phase: str) -> None:
    bench.serving(OLD)
    attempt, asked = bench.run(**{f"{phase}__small": RuntimeError("boom")})
    assert attempt.outcome in ("rolled-back", "dead-end")
    assert "boom" in attempt.error
    if phase != "release":  # else the release of the roll-back fails as well
        assert attempt.outcome == "rolled-back"
        assert asked[-6:] == [
            "prepare old",
            "install old",
            "ready old",
            "smoke old",
            "enable_only old.service",
            "after_rollback small",
        ]
        assert attempt.evidence["back"]["deployment"] == "old"
    still = bench.store.serving()
    assert still
    assert still.order == OLD


def test_a_model_is_started_only_behind_the_open_gate(bench: Bench) -> None:
    """F19: release and gate first; nothing starts and crashes against a GPU that is not free."""
    started: list[str] = []
    bench.patch.setattr(systemd, "start", started.append)
    attempt, asked = bench.run(gate__small=RuntimeError("GPU 1 900 MiB"))
    assert (started, asked.count("gate small")) == ([], 1)
    assert attempt.outcome == "dead-end" and "start" not in attempt.begun
    attempt, asked = bench.run()
    assert started == [order().unit]
    assert attempt.done.index("release") < attempt.done.index("gate") < attempt.done.index("start")


def test_a_host_that_goes_down_in_the_middle_leaves_the_record_open_for_its_next_boot(
    bench: Bench,
) -> None:
    bench.serving(OLD)
    bench.patch.setattr(systemd, "shutting_down", lambda: True)
    attempt, asked = bench.run(ready__small=RuntimeError("ended by SIGTERM"))
    assert (attempt.outcome, attempt.error) == ("", "")
    assert "ready" in attempt.begun and UNDO not in attempt.begun
    assert not any("old" in act for act in asked), "nothing can be started any more"


def test_what_even_sigkill_does_not_end_is_a_dead_end_and_nothing_is_started_beside_it(
    bench: Bench,
) -> None:
    started: list[str] = []
    bench.patch.setattr(systemd, "start", started.append)
    bench.serving(OLD)
    attempt, asked = bench.run(release__small=systemd.Unkillable("pid 7 hangs in the kernel"))
    assert (attempt.outcome, attempt.dead_end) == ("dead-end", "a process that cannot be killed")
    assert (started, asked[-2:]) == ([], ["enable_only old.service", "after_rollback small"])


def test_a_release_that_fails_twice_still_starts_the_old_model(bench: Bench) -> None:
    bench.serving(OLD)
    attempt, asked = bench.run(release__small=RuntimeError("sweep failed"))
    assert "smoke old" in asked
    assert attempt.outcome == "rolled-back"


def test_files_that_cannot_be_put_back_do_not_keep_the_old_model_from_serving(
    bench: Bench,
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    bench.serving(OLD)
    bench.patch.setattr(install, "put_back", fail)
    attempt, asked = bench.run(ready__small=RuntimeError("boom"))
    assert "smoke old" in asked
    assert "No space" in attempt.error or attempt.outcome == "rolled-back"


def test_without_a_model_before_a_failure_is_a_dead_end(bench: Bench) -> None:
    attempt, _ = bench.run(ready__small=RuntimeError("boom"))
    assert attempt.outcome == "dead-end"
    assert "nothing of ours served before, so nothing serves now" in attempt.error
    assert bench.store.serving() is None


def test_an_old_model_that_does_not_come_back_is_a_dead_end_with_both_reasons(
    bench: Bench,
) -> None:
    bench.serving(OLD)
    attempt, _ = bench.run(ready__small=RuntimeError("boom"), ready__old=RuntimeError("bang"))
    assert attempt.outcome == "dead-end"
    assert "boom" in attempt.error
    assert "bang" in attempt.error


def test_a_unit_of_somebody_else_comes_back_verified_with_its_files_untouched(
    bench: Bench,
) -> None:
    theirs = Serving(order(deployment="theirs", unit="theirs.service", unit_digest=""), "e", "", 0)
    bench.patch.setattr(transaction, "way_back", lambda *_: (theirs, "theirs is the way back"))
    attempt, asked = bench.run(ready__small=RuntimeError("boom"))
    assert attempt.outcome == "rolled-back"
    assert asked[-4:] == [
        "ready theirs",
        "smoke theirs",
        "enable_only None",  # what it was before is written down with what was stopped
        "after_rollback small",
    ]
    assert "install theirs" not in asked
    assert not attempt.evidence["back"]["ours"]
    assert bench.store.serving() is None, "nothing of ours serves"


def test_at_a_dead_end_a_unit_of_somebody_else_starts_at_the_next_boot(bench: Bench) -> None:
    theirs = Serving(order(deployment="theirs", unit="theirs.service", unit_digest=""), "e", "", 0)
    bench.patch.setattr(transaction, "way_back", lambda *_: (theirs, "theirs is the way back"))
    boom = {f"ready__{name}": RuntimeError(name) for name in ("small", "theirs")}
    attempt, asked = bench.run(**boom)
    assert (attempt.outcome, attempt.dead_end) == ("dead-end", "a roll-back that failed too")
    assert asked[-2:] == ["put_back_aside {'start': False}", "after_rollback small"]
    assert "enable_only theirs.service" not in asked
