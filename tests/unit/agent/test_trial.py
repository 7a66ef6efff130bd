"""A unit on trial keeps what its operator added, and only leaves out a sweep that is done."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutover_agent import systemd, trial

SWEEP = "ExecStartPre=-+/usr/local/bin/cutover sweep %n --gpus 0,1\n"
UNIT = "vllm-small.service"


@pytest.fixture
def drop_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(trial, "RUNTIME", tmp_path)
    monkeypatch.setattr(systemd, "call", lambda *_, check=True: "")
    return tmp_path / f"{UNIT}.d" / trial.NAME


def test_systemd_does_not_start_it_again(drop_in: Path) -> None:
    trial.begin(UNIT)
    assert drop_in.read_text() == "[Service]\nRestart=no\n"
    trial.end(UNIT)
    assert not drop_in.parent.exists()


@pytest.mark.parametrize(
    ("before", "kept"),
    [
        (SWEEP, ["ExecStartPre="]),
        (f"{SWEEP}ExecStartPre=/bin/a b\n", ["ExecStartPre=", "ExecStartPre=/bin/a b"]),
        ("ExecStartPre=/bin/a\n", []),
        ("", []),
    ],
)
def test_behind_a_release_it_starts_without_its_own_sweep_and_with_all_else(
    drop_in: Path, before: str, kept: list[str]
) -> None:
    trial.begin(UNIT, f"[Service]\n{before}ExecStart=/bin/serve\n")
    assert drop_in.read_text().splitlines() == ["[Service]", "Restart=no", *kept]
