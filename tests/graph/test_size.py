"""A large fleet costs what its resources cost: nothing grows faster than their number."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pytest
from pulumi_command import remote

from tests.graph.recorder import Registered, graph_of, record
from tests.graph.test_graph import KEY

ROOT = Path(__file__).resolve().parents[2]
MOST_TIMES = 3.0
"""CPU time of the program over that of the bare registrations."""
TRIES = 3
"""Other people load the machine: the best of these counts."""
MOST_BYTES = 8192


def project(folder: Path, deployments: int) -> Path:
    """A project whose catalogue has that many deployments."""
    for part in ("components", "cutover", "templates"):
        (folder / part).symlink_to(ROOT / part)
    (folder / "deployments").mkdir()
    text = (ROOT / "deployments/minimax-m25.yaml").read_text()
    for number in range(deployments):
        one = text.replace("vllm-minimax-m25.service", f"vllm-{number}.service")
        (folder / "deployments" / f"m{number}.yaml").write_text(one)
    return folder


def fleet_of(hosts: int) -> dict[str, Any]:
    boxes = {f"b{n}": {"address": f"b{n}.invalid", "key": KEY, "gpus": 8} for n in range(hosts)}
    return {"active": "m0", "facts": "false", "hosts": boxes}


def bare(found: dict[str, Registered]) -> Callable[[], None]:
    """A program that registers as many resources, without edges, and does nothing else."""

    def program() -> None:
        made: dict[str, pulumi.Resource] = {}
        for name, one in found.items():
            options = pulumi.ResourceOptions(parent=made.get(one.parent))
            if one.type.startswith("cutover:"):
                made[name] = pulumi.ComponentResource(one.type, name, None, options)
            else:
                login = remote.ConnectionArgs(host="h", private_key=pulumi.Output.secret("k"))
                made[name] = remote.Command(
                    name, connection=login, create="c", stdin="s", delete="d", opts=options
                )

    return program


@pytest.mark.parametrize(("hosts", "deployments"), [(20, 5), (1, 50)])
def test_the_program_costs_little_more_than_registering_its_resources(
    hosts: int, deployments: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = project(tmp_path, deployments)
    ratios: list[float] = []
    while len(ratios) < TRIES and (not ratios or min(ratios) > MOST_TIMES):
        start = time.process_time()
        found = record(fleet_of(hosts), monkeypatch, root)
        middle = time.process_time()
        graph_of(bare(found), {})
        ratios.append((middle - start) / (time.process_time() - middle))
    assert len(found) == 1 + hosts * (9 + 4 * deployments)
    assert min(ratios) <= MOST_TIMES, ratios


def test_what_one_resource_sends_does_not_grow_with_the_fleet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for the runbook, which names every deployment, and the agent."""
    found = record(fleet_of(1), monkeypatch, project(tmp_path, 50))
    sizes = {name: len(json.dumps(each.inputs)) for name, each in found.items()}
    large = {name for name, size in sizes.items() if size > MOST_BYTES}
    assert large == {"b0-agent", "b0-runbook"}
