"""Units that are stopped, late ones, and one that nothing ends."""

from __future__ import annotations

import os

import pytest

from cutover_agent import stopping, systemd
from cutover_agent.clock import Deadline
from cutover_agent.processes import read_process
from cutover_agent.systemd import UnitState, Unkillable

DOWN = UnitState("inactive", "dead", 0, 0, "", "disabled", "success")
ENDING = UnitState("deactivating", "stop-sigterm", 42, 0, "", "disabled", "success")


class Unit:
    """Ends by itself, by SIGKILL, or never."""

    def __init__(self, ends: str, patch: pytest.MonkeyPatch) -> None:
        self.ends, self.called = ends, list[tuple[str, ...]]()
        patch.setattr(systemd, "states", lambda units: dict.fromkeys(units, self.state))
        patch.setattr(systemd, "call", lambda *words, **_: self.called.append(words))

    @property
    def state(self) -> UnitState:
        killed = ("kill", "--signal=SIGKILL", "a.service") in self.called
        return DOWN if self.ends == "by itself" or (killed and self.ends == "killed") else ENDING


@pytest.mark.parametrize(
    ("ends", "says"),
    [
        ("by itself", "a.service is stopped"),
        ("killed", "a.service did not stop within 0 s and was killed"),
    ],
)
def test_how_a_unit_ended_is_told(ends: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Unit(ends, monkeypatch)
    assert stopping.finish(["a.service"], Deadline(0.1), 0.1) == [says]


def test_systemd_is_asked_once_about_all_units_that_are_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[list[str]] = []

    def states(units: list[str]) -> dict[str, UnitState]:
        asked.append(units)
        return dict.fromkeys(units, DOWN)

    monkeypatch.setattr(systemd, "states", states)
    said = stopping.finish(["a.service", "b.service"], Deadline(5), 5)
    assert said == ["a.service is stopped", "b.service is stopped"]
    assert asked == [["a.service", "b.service"]]


def test_a_unit_that_sigkill_does_not_end_is_the_dead_end_of_that_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Unit("never", monkeypatch)
    with pytest.raises(Unkillable, match=r"a.service does not end even after SIGKILL"):
        stopping.finish(["a.service"], Deadline(0.1), 0.1)


def test_a_process_that_a_stopped_unit_has_left_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alive = read_process(os.getpid())
    assert alive
    for state, seconds in ((DOWN, 60.0), (ENDING, 0.3)):
        monkeypatch.setattr(
            systemd, "states", lambda units, state=state: dict.fromkeys(units, state)
        )
        spent = Deadline(seconds)
        assert not stopping.await_processes(["a.service"], [alive], spent)
        assert spent.passed == (state == ENDING)
