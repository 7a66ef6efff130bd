"""What a real H200 answered while 105 GiB were taken, found, freed and gated.

Driver 580.159.04, one GPU. PyTorch held the memory, once as a server started by hand, once as a
worker whose server was killed; a monitor had NVML open all the time.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cutover_agent.devices import Devices
from cutover_agent.gate import judge
from cutover_agent.gpus import parse_gpus, parse_rows
from cutover_agent.health import Health, judge_health, parse
from cutover_agent.holders import Landscape, find_holders, unseen
from cutover_agent.policy import Rules
from cutover_agent.processes import Process
from cutover_agent.release_plan import plan_release
from cutover_agent.scope import Scope

RECORDED: dict[str, dict[str, Any]] = {
    one["name"]: one
    for one in json.loads((Path(__file__).parent / "h200/transcripts.json").read_text())
}


@pytest.mark.parametrize("name", ["by hand", "orphaned worker"])
def test_a_hundred_gib_are_found_ended_and_gated_within_a_second(name: str) -> None:
    took = RECORDED[name]
    gpus, rows, *after = took["asked"]
    reading = parse_gpus(gpus["code"], gpus["stdout"], gpus["stderr"])
    processes = {
        one["pid"]: Process(
            one["pid"], 1, one["parent"], one["state"], one["comm"], tuple(one["argv"]), "root", "/"
        )
        for one in took["holders"]
    }
    opened = {one["pid"]: Devices(frozenset(one["gpus"])) for one in took["holders"]}
    listed = parse_rows(rows["code"], rows["stdout"])
    seen = Landscape(processes, find_holders(processes, opened, listed, reading), reading)
    assert reading.total_mib > 100 * 1024
    assert unseen(seen) == {}, "9 MiB more than the list says is the driver's own"
    plan = plan_release(seen, Rules(gpus=frozenset({0})))
    server = next(pid for pid, one in processes.items() if one.argv[-1] != "monitor.py")
    assert [tree.root.pid for tree in plan.end] == [server]
    assert plan.foreign == (), "the monitor holds no memory"
    series = [parse_gpus(one["code"], one["stdout"], one["stderr"]) for one in after]
    assert judge(series, Scope("box", 1, reading.gpus)).open
    assert took["end_seconds"] + took["gate_seconds"] < 1


def test_a_monitor_has_the_same_nodes_open_as_a_model_but_maps_none() -> None:
    monitor, model = RECORDED["monitor"], RECORDED["by hand"]
    assert monitor["opened"] == model["opened"]
    assert monitor["mapped"] == []
    assert "/dev/nvidia0" in model["mapped"]


def test_a_healthy_card_is_healthy() -> None:
    answer = RECORDED["health"]["asked"][0]
    fields = answer["query"].removeprefix("--query-gpu=").split(",")
    (card,) = parse(fields, answer["stdout"])
    assert judge_health([card], []) == Health()
