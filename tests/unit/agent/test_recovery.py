"""Wherever the agent dies, recovery ends with one model that serves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from cutover_agent.attempt import PHASES, RESTORE, UNDO, Attempt
from cutover_agent.recovery import decide, recover
from cutover_agent.store import Serving
from cutover_agent.transaction import Transaction
from tests.unit.agent.machine import Died, Machine

OLD, NEW = "ExecStart=/old\n", "ExecStart=/new\n"
BEFORE_STOP = list(PHASES[: PHASES.index("release")])


def attempt(*begun: str, outcome: str = "", boot: str = "now") -> Attempt:
    return Attempt("t", "o", "new", boot, begun=list(begun), outcome=outcome)


@pytest.mark.parametrize(
    ("seen", "runs", "does"),
    [
        (None, False, "nothing"),
        (attempt(*PHASES, outcome="serving"), True, "nothing"),
        (attempt(), False, "close"),
        (attempt(*BEFORE_STOP), True, "close"),
        (attempt(*BEFORE_STOP, boot="earlier"), True, "go back"),
        (attempt(*BEFORE_STOP, "release"), False, "go back"),
        (attempt(*PHASES[: PHASES.index("start")]), True, "go back"),
        (attempt(*PHASES[: PHASES.index("ready")]), True, "go on"),
        (attempt(*PHASES[: PHASES.index("ready")]), False, "go back"),
        (attempt(*PHASES[: PHASES.index("commit")], boot="earlier"), True, "go back"),
        (attempt(*PHASES, boot="earlier"), False, "go on"),
        (attempt(*PHASES, UNDO), True, "go back"),
        (attempt(*PHASES, UNDO, RESTORE), True, "go back"),
    ],
)
def test_what_is_left_to_do_follows_from_the_record(
    seen: Attempt | None, runs: bool, does: str
) -> None:
    assert decide(seen, "now", runs) == does


class Case:
    """A switch on a host of its own, from `old` to `new` under one unit's name or two."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch, unit: str, good: bool) -> None:
        self.machine = Machine(root, patch)
        self.old, old_env = self.machine.deployment("old", "old.service", OLD)
        self.machine.serve(self.old, old_env)
        self.new, new_env = self.machine.deployment("new", unit, NEW)
        if not good:
            self.machine.broken.add(NEW)
        self.journal, self.attempt = self.machine.begin(self.new, new_env)
        self.before = self.machine.files()

    def run(self) -> None:
        Transaction(self.machine.store, self.journal, self.attempt).run()

    def recover(self) -> None:
        recover(self.machine.store)

    def check(self) -> None:
        """One model serves and is enabled, from the files that are there, and nothing is open."""
        machine = self.machine
        ended = self.journal.load()
        serving = machine.store.serving()
        assert ended and serving
        assert ended.outcome in ("serving", "rolled-back", "broken-off", "refused")
        wanted = self.new if ended.outcome == "serving" else self.old
        text = NEW if ended.outcome == "serving" else OLD
        assert serving.order == wanted
        assert machine.running == {wanted.unit: text}
        assert machine.enabled == {wanted.unit}
        assert machine.files()[wanted.unit] == text
        assert wanted == self.new or machine.files() == self.before
        assert not list((machine.root / "run").iterdir()), "no unit is on trial"
        assert recover(machine.store) == "nothing"


def deaths(act: Callable[[], None], machine: Machine, operations: int) -> bool:
    """Lets `act` die after so many operations; whether it did."""
    machine.die_after(operations)
    with suppress(Died):
        act()
        machine.live()
        return False
    machine.live()
    return True


def prefixes(make: Callable[[str], Case], step: int, first: int = 0) -> Iterator[Case]:
    """The same switch again and again, dead `step` operations later each time."""
    for operations in count(first, step):
        case = make(str(operations))
        if not deaths(case.run, case.machine, operations):
            return
        yield case


@pytest.fixture(params=["two units", "one unit"])
def unit(request: pytest.FixtureRequest) -> str:
    return "new.service" if request.param == "two units" else "old.service"


@pytest.mark.parametrize("good", [True, False], ids=["new is good", "new is broken"])
@pytest.mark.parametrize("boots", [True, False], ids=["host boots", "agent dies"])
def test_an_agent_that_dies_after_any_operation_is_finished_by_recovery(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unit: str, good: bool, boots: bool
) -> None:
    seen = []
    # A new model that is good and one that is broken go the same way up to its start.
    for case in prefixes(lambda n: Case(tmp_path / n, monkeypatch, unit, good), 2, int(good)):
        if boots:
            case.machine.power_cut()
        case.recover()
        case.check()
        ended = case.journal.load()
        seen.append(ended.outcome if ended else "")
    assert len(seen) > 40, "a switch is more than a few operations"
    assert ({"rolled-back"} if boots else {"broken-off", "rolled-back"}) <= set(seen)
    assert ("serving" in seen) == good


@pytest.mark.parametrize("good", [True, False], ids=["new is good", "new is broken"])
def test_a_disk_that_is_full_after_any_operation_ends_with_one_model_and_a_closed_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unit: str, good: bool
) -> None:
    seen = []
    for operations in count(0, 3):
        case = Case(tmp_path / str(operations), monkeypatch, unit, good)
        case.machine.acts, case.machine.full_after = 0, operations
        with suppress(OSError):
            case.run()
        over, case.machine.full_after = case.machine.acts <= operations, -1
        ended = case.journal.load()
        assert ended
        if not ended.outcome:
            assert ended.begun in ([], ["stage"]), "only before the reserve is there"
            case.recover()
        case.check()
        seen.append(ended.outcome)
        if over:
            break
    assert {"refused", "rolled-back"} < set(seen)
    assert ("serving" in seen) == good


@pytest.mark.parametrize("boots", [True, False], ids=["host boots", "agent dies"])
def test_a_recovery_that_dies_as_well_is_finished_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unit: str, boots: bool
) -> None:
    cases = prefixes(lambda n: Case(tmp_path / n, monkeypatch, unit, True), 3)
    for number, case in enumerate(cases):
        if deaths(case.recover, case.machine, 1 + number * 7 % 45) and boots:
            case.machine.power_cut()
        case.recover()
        case.check()


def test_a_host_that_dies_in_every_recovery_comes_to_a_named_end_with_the_old_unit_enabled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(tmp_path / "host", monkeypatch, "new.service", False)
    case.machine.dies_at = "start old.service"
    for act in (case.run, case.recover, case.recover):
        with suppress(Died):
            act()
        case.machine.power_cut()
    ended = case.journal.load()
    assert ended and (ended.outcome, ended.dead_end) == ("dead-end", "a roll-back that failed too")
    assert "it was cut off twice" in ended.error
    assert case.machine.running == {"old.service": OLD}


def test_a_boot_after_the_checks_goes_back_to_a_server_that_was_started_by_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing had been stopped yet, but the boot has ended it, and systemd does not know it."""
    machine = Machine(tmp_path / "host", monkeypatch)
    captured, env = machine.deployment("by-hand", "cutover-captured.service", OLD)
    new, new_env = machine.deployment("new", "new.service", NEW)
    journal, attempt = machine.begin(new, new_env)
    journal.set_previous(Serving(captured, env, "", 0.0))
    attempt.begun, attempt.done = ["stage"], ["stage"]
    journal.save(attempt)
    machine.power_cut()
    assert recover(machine.store) == "go back"
    ended = journal.load()
    assert ended and ended.outcome == "rolled-back"
    assert machine.running == {captured.unit: OLD}
    assert machine.enabled == {captured.unit}
