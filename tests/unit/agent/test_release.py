"""What a release and a gate ask for while nothing serves: each question is a process to start."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cutover_agent import phases, systemd
from cutover_agent.gpus import Reading
from cutover_agent.processes import read_process
from cutover_agent.store import Store
from tests.unit.agent.machine import NoSweep
from tests.unit.agent.samples import VLLM, holder, landscape, order, process, reading

UNIT = "vllm-small.service"


def test_between_the_death_and_the_verdict_systemd_is_asked_once_and_nvidia_smi_three_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    with subprocess.Popen(["sleep", "1d"]) as sleeper:
        real = read_process(sleeper.pid)
        assert real
        server = process(sleeper.pid, *VLLM, unit=UNIT, start=real.start)
        full = reading(*(72500,) * 8)

        def call(verb: str, *_: str, check: bool = True) -> str:
            asked.append(verb)
            if verb == "stop":
                sleeper.kill()
            return f"ActiveState={'inactive' if 'stop' in asked else 'active'}\n"

        def read() -> Reading:
            asked.append("nvidia-smi")
            return reading(*(0,) * 8)

        monkeypatch.setattr(systemd, "call", call)
        monkeypatch.setattr(phases, "read_gpus", read)
        serving = landscape(holder(server), main_pids={UNIT: sleeper.pid}, seen=full)
        monkeypatch.setattr(phases, "survey", lambda: serving)
        unread = Reading(full.gpus, "not asked again")
        monkeypatch.setattr(phases, "look_again", lambda _: landscape(seen=unread))
        monkeypatch.setattr(phases, "Sweep", lambda *_: NoSweep())
        store = Store(tmp_path)
        store.prepare()
        does = phases.Phases(store, lambda _: None)
        proof = does.gate(order(), does.release(order()))
    assert proof["gpus"][0]["before_mib"] == 72500
    assert asked[asked.index("stop") + 1 :] == ["show", *["nvidia-smi"] * 3]
