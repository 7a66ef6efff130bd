"""What is refused while the old model still serves."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from cutover_agent.checks import gpu_reasons, verify
from cutover_agent.gpus import Reading
from cutover_agent.obstacles import obstacles
from cutover_agent.release_plan import plan_release
from tests.unit.agent.samples import (
    NOTEBOOK,
    VLLM,
    holder,
    landscape,
    process,
    reading,
    rules,
    scope,
)

GOOD = "[Unit]\nDescription=x\n[Service]\nType=exec\nExecStart=/bin/true\n"
UNIT = "vllm-small.service"
OURS = frozenset({UNIT})


@pytest.mark.parametrize(
    ("seen", "says"),
    [
        (reading(0, 0), ""),
        (reading(70000, 70000), ""),
        (reading(0), "1 GPUs answer, but the host is declared with 2"),
        (reading(0, 0, problem="nvidia-smi exits 18: mismatch"), "mismatch"),
    ],
)
def test_gpus_that_cannot_be_trusted_are_a_reason(seen: Reading, says: str) -> None:
    assert says in " ".join(gpu_reasons(seen, 2))
    assert bool(gpu_reasons(seen, 2)) is bool(says)


@pytest.mark.parametrize(
    ("name", "argv", "mib", "refused"),
    [
        ("a notebook with memory", NOTEBOOK, 1024, True),
        ("a monitor without", ("python3", "watch.py"), 0, False),
        ("a server by hand", VLLM, 70000, False),
        ("MPS, which keeps its memory", ("nvidia-cuda-mps-server",), 27, True),
        ("a display", ("/usr/lib/xorg/Xorg", ":0"), 50, True),
        ("the persistence daemon", ("nvidia-persistenced",), 0, False),
    ],
)
def test_what_would_keep_the_gate_shut_is_refused_before_the_stop(
    name: str, argv: tuple[str, ...], mib: int, refused: bool
) -> None:
    """The old model holds its own memory beside it."""
    old = process(10, *VLLM, unit=UNIT)
    now = reading(70000 + mib)
    seen = landscape(holder(process(50, *argv), mib), holder(old), seen=now)
    plan = plan_release(seen, rules(ours=OURS, running=OURS))
    assert bool(obstacles(plan, seen, scope(now))) is refused, name


def test_memory_of_nobody_is_refused_where_nothing_will_be_ended() -> None:
    for used, refused in ((2, True), (0, False)):
        seen = landscape(seen=reading(used))
        found = obstacles(plan_release(seen, rules(ours=OURS)), seen, scope(seen.reading))
        assert bool(found) is refused
        assert not refused or "cannot be seen" in found[0]


needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")


@needs_systemd
@pytest.mark.parametrize(
    ("text", "says"),
    [
        (GOOD, ""),
        (GOOD + "Foo=1\n", "Unknown key name 'Foo'|Unknown key 'Foo'"),
        (GOOD.replace("/bin/true", "/nope/python3 -m vllm"), "/nope/python3 is not executable"),
        (GOOD + "StartLimitIntervalSec=0\n", "StartLimitIntervalSec"),
        (GOOD + "LimitNOFILE=1M\n", ""),
        (GOOD.replace("[Unit]\n", "[Unit]\nRequires=nope.service\n"), "nope.service not found"),
        ("", UNIT),
    ],
)
def test_what_systemd_says_about_a_unit_is_a_reason(text: str, says: str) -> None:
    lines = verify(UNIT, text)
    assert bool(lines) or not says
    assert not says or re.search(says, "\n".join(lines))
    assert all(line.startswith(UNIT) and "/tmp" not in line for line in lines)


def test_a_verifier_that_fails_without_naming_the_unit_is_no_yes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "systemd-analyze"
    tool.write_text("#!/bin/sh\necho 'Failed to initialize manager: No medium found' >&2; exit 1\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert "Failed to initialize manager" in "".join(verify(UNIT, GOOD))


def test_a_verifier_that_is_missing_is_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert verify(UNIT, GOOD)
