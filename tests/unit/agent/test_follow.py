"""A step shows its part of a transaction, and ends as that part did."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutover_agent import attempt as attempt_module
from cutover_agent import lock
from cutover_agent.attempt import Attempt, Journal
from cutover_agent.follow import Failed, explain, follow
from cutover_agent.store import Store
from tests.unit.agent.samples import order

ALL = ["stage", "release", "gate", "install", "start", "ready", "smoke", "commit"]


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Journal:
    monkeypatch.setattr(lock, "FOLDER", tmp_path / "run")
    store = Store(tmp_path)
    store.prepare()
    made = Journal(store, "a")
    made.create(order())
    for phase in [*ALL, "roll-back"]:
        made.tell(phase, "said")
    return made


def change(journal: Journal, **changes: object) -> Attempt:
    attempt = journal.load()
    assert attempt
    for name, value in changes.items():
        setattr(attempt, name, value)
    journal.save(attempt)
    return attempt


@pytest.mark.parametrize(
    ("until", "whole", "phases"),
    [
        ("released", False, ["stage", "release"]),
        ("gated", False, ["gate"]),
        ("installed", False, ["install"]),
        ("serving", False, ["start", "ready", "smoke", "commit"]),
        ("serving", True, ALL),
        ("gated", True, ["stage", "release", "gate"]),
    ],
)
def test_a_step_shows_its_own_part_or_all_up_to_it(
    journal: Journal,
    until: str,
    whole: bool,
    phases: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    change(journal, done=ALL, outcome="serving", evidence={"load_seconds": 1.0})
    got = follow(journal, until, whole)
    assert got == {"receipt": "a", "deployment": "small", "load_seconds": 1.0}
    shown = [line.split(":")[0] for line in capsys.readouterr().err.splitlines()]
    assert shown == [*phases, "roll-back"]
    # Nothing of it is left to tell once the last step was there.
    assert (journal.last_step() > 0) == (until != "serving")


def test_a_failure_is_told_once_and_remembered(journal: Journal) -> None:
    change(journal, done=["stage", "release"], outcome="dead-end", error="gate: busy")
    with pytest.raises(Failed, match="gate: busy"):
        follow(journal, "gated", False)
    attempt = journal.load()
    assert attempt
    assert attempt.told
    assert journal.last_step() == 0


@pytest.mark.parametrize("outcome", ["rolled-back", "serving"])
def test_on_a_full_disk_a_step_still_ends_as_its_part_did(
    journal: Journal, monkeypatch: pytest.MonkeyPatch, outcome: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    change(journal, done=ALL, outcome=outcome, error="smoke: wrong")
    monkeypatch.setattr(attempt_module, "write_json", full)
    if outcome == "serving":
        assert follow(journal, "serving", False)["receipt"] == "a"
    else:
        with pytest.raises(Failed, match="smoke: wrong"):
            follow(journal, "serving", False)


def test_a_transaction_that_broke_off_and_that_nobody_finishes_is_told(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cutover_agent.follow.RECOVERY_SECONDS", 0.1)
    change(journal, begun=["stage", "release"])
    with pytest.raises(Failed, match="broke off in release"):
        follow(journal, "gated", False)


def test_an_end_that_comes_while_looking_is_not_taken_for_a_break(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def last_moment(_: str) -> bool:
        change(journal, done=ALL, outcome="serving")
        return False

    monkeypatch.setattr(lock, "is_held", last_moment)
    assert follow(journal, "serving", False)["receipt"] == "a"


@pytest.mark.parametrize(
    ("outcome", "evidence", "says"),
    [
        ("refused", {}, "nothing was stopped or changed"),
        ("dead-end", {}, "NOTHING SERVES"),
        (
            "rolled-back",
            {"back": {"deployment": "big", "answer": " Paris\n", "tokens_per_second": 9.5}},
            "big serves again, verified ('Paris', 9.5 tokens/s)",
        ),
    ],
)
def test_a_failure_says_what_serves_now_and_what_to_do(
    outcome: str, evidence: dict[str, object], says: str
) -> None:
    attempt = Attempt("a", "d", "small", "b", outcome=outcome, error="why", evidence=evidence)
    text = explain(order(), attempt)
    assert text.startswith("gpu-box: small does not serve: why")
    assert says in text
    assert "next:" in text


def test_a_long_error_is_cut_to_a_few_kilobytes_and_says_so() -> None:
    """F125."""
    attempt = Attempt("a", "d", "small", "b", outcome="dead-end", error="x" * 10_000_000)
    text = explain(order(), attempt)
    assert len(text) < 5000
    assert "(cut: `cutover log` on the host has it all)\n" in text
    assert "NOTHING SERVES" in text and "next:" in text


def test_a_quiet_load_still_says_something_every_few_seconds(
    journal: Journal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """F115: a line that says nothing for minutes is cut on the way."""
    said = 0

    def quiet(_: float) -> None:
        nonlocal said
        said += capsys.readouterr().err.count("small: still at it\n")
        if said == 3:
            change(journal, done=ALL, outcome="serving")

    monkeypatch.setattr("cutover_agent.follow.HEARTBEAT_SECONDS", 0.01)
    monkeypatch.setattr("cutover_agent.follow.time.sleep", quiet)
    monkeypatch.setattr(lock, "is_held", lambda _: True)
    follow(journal, "serving", False)
    assert said == 3


@pytest.mark.parametrize(("ours", "offered"), [(True, True), (False, False)])
def test_only_a_deployment_is_offered_as_active(ours: bool, offered: bool) -> None:
    back = {"deployment": "big", "ours": ours, "answer": "Paris", "tokens_per_second": 9.5}
    attempt = Attempt("a", "d", "small", "b", outcome="rolled-back", evidence={"back": back})
    assert ("set `active` to big" in explain(order(), attempt)) == offered
