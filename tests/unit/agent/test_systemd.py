"""What is asked of systemd, with a systemctl of our own on PATH."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cutover_agent import systemd
from cutover_agent.systemd import SystemdError, UnitState


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def fake(folder: Path, script: str, name: str = "systemctl") -> None:
    tool = folder / name
    tool.write_text(f'#!/bin/sh\necho "$@" >> {folder}/asked\n{script}\n')
    tool.chmod(0o755)


def test_a_unit_is_read_as_systemd_shows_it(tools: Path) -> None:
    shown = (
        "MainPID=42\nNRestarts=3\nActiveState=activating\nSubState=auto-restart\nResult=exit-code"
    )
    fake(tools, f"printf '{shown}\\nInvocationID=abc\\nUnitFileState=enabled\\n'")
    got = systemd.state("a.service")
    assert got == UnitState("activating", "auto-restart", 42, 3, "abc", "enabled", "exit-code")
    assert not got.down


def test_several_units_are_one_question(tools: Path) -> None:
    fake(tools, "printf 'ActiveState=active\\nMainPID=7\\n\\nActiveState=inactive\\n'")
    found = systemd.states(["a.service", "b.service"])
    assert (found["a.service"].main_pid, found["a.service"].down) == (7, False)
    assert found["b.service"].down
    assert len((tools / "asked").read_text().splitlines()) == 1
    assert systemd.states([]) == {}


def test_a_unit_that_systemd_leaves_out_is_not_taken_for_a_stopped_one(tools: Path) -> None:
    fake(tools, "echo ActiveState=active")
    with pytest.raises(SystemdError, match="1 answers about 2 units"):
        systemd.states(["a.service", "b.service"])


@pytest.mark.parametrize(
    ("active", "down"),
    [
        ("inactive", True),
        ("failed", True),
        ("active", False),
        ("activating", False),
        ("deactivating", False),
        ("reloading", False),
    ],
)
def test_anything_but_inactive_or_failed_may_load(tools: Path, active: str, down: bool) -> None:
    fake(tools, f"echo ActiveState={active}")
    assert systemd.state("a.service").down is down


def test_a_unit_that_is_about_to_start_is_not_down(tools: Path) -> None:
    """Right after `start --no-block`, or between two tries, it is inactive with a job waiting."""
    fake(tools, "printf 'ActiveState=inactive\\nSubState=dead\\nJob=4711\\n'")
    assert not systemd.state("a.service").down


def test_an_unknown_unit_is_down(tools: Path) -> None:
    fake(tools, "printf 'MainPID=0\\nActiveState=inactive\\nNRestarts=\\nInvocationID=\\n'")
    assert systemd.state("a.service").down


def test_a_refusal_is_told_by_its_last_line(tools: Path) -> None:
    fake(tools, "echo noise >&2; echo 'Unit a.service is masked.' >&2; exit 1")
    with pytest.raises(SystemdError, match=r"systemctl start a.service: Unit a.service is masked."):
        systemd.call("start", "a.service")
    assert systemd.call("start", "a.service", check=False) == ""


def test_a_systemd_that_does_not_answer_is_told_in_a_sentence(
    tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(systemd, "CALL_SECONDS", 0.2)
    fake(tools, "exec sleep 20")
    with pytest.raises(SystemdError):
        systemd.call("show", "a.service")


def test_no_call_waits_for_a_job(tools: Path) -> None:
    fake(tools, "echo ActiveState=inactive")
    systemd.start("a.service")
    systemd.stop("a.service", 1)
    jobs = [
        line
        for line in (tools / "asked").read_text().splitlines()
        if line.split()[0] in ("start", "stop")
    ]
    assert jobs == ["start --no-block a.service", "stop --no-block a.service"]


def test_a_unit_that_does_not_stop_is_killed_and_that_is_said(tools: Path) -> None:
    fake(
        tools,
        f"[ $1 = kill ] && touch {tools}/killed\n"
        f"[ -e {tools}/killed ] && echo ActiveState=failed || echo ActiveState=deactivating",
    )
    assert "did not stop within 0 s and was killed" in systemd.stop("a.service", 0.2)


def test_a_unit_that_cannot_be_killed_is_an_error(
    tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(systemd, "KILL_SECONDS", 0.1)
    fake(tools, "echo ActiveState=deactivating")
    with pytest.raises(SystemdError, match="even after SIGKILL"):
        systemd.stop("a.service", 0.1)


def test_a_journal_that_does_not_answer_ends_no_load(
    tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Progress and causes are for people; a load goes on without them."""
    monkeypatch.setattr(systemd, "CALL_SECONDS", 0.2)
    fake(tools, "exec sleep 20", "journalctl")
    assert systemd.journal("a.service", "abc", 50) == []
