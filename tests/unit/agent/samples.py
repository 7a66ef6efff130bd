"""Small legal facts that a test changes in one place."""

from __future__ import annotations

from typing import Any

from cutover_agent.gpus import Gpu, Reading
from cutover_agent.holders import Holder, Landscape
from cutover_agent.order import Order, Probe
from cutover_agent.processes import Process

VLLM = ("/opt/vllm/bin/python3", "-m", "vllm.entrypoints.openai.api_server", "--port", "8000")
SGLANG = ("/opt/sglang/bin/python3", "-m", "sglang.launch_server", "--tp", "8")
NOTEBOOK = ("/usr/bin/python3", "-m", "ipykernel_launcher", "-f", "/root/kernel-1.json")


def order(**changes: Any) -> Order:
    fields: dict[str, Any] = {
        "host": "gpu-box",
        "host_gpus": 8,
        "deployment": "small",
        "unit": "vllm-small.service",
        "unit_digest": "0" * 64,
        "gpus": tuple(range(8)),
        "checkpoint": "/models/small",
        "probe": Probe("http://127.0.0.1:8000", "small"),
    }
    return Order(**{**fields, **changes})


def reading(*used: int, problem: str = "") -> Reading:
    gpus = tuple(Gpu(index, f"GPU-{index}", mib) for index, mib in enumerate(used))
    return Reading(gpus, problem)


def process(pid: int, *argv: str, parent: int = 1, unit: str = "", **changes: Any) -> Process:
    """A process that sits in `unit` of the system's own tree."""
    slices = "user.slice/user-0.slice" if unit.startswith("session") else "system.slice"
    fields: dict[str, Any] = {
        "pid": pid,
        "start": 1000 + pid,
        "parent": parent,
        "state": "S",
        "name": argv[0].rpartition("/")[2][:15] if argv else "",
        "argv": argv,
        "user": "root",
        "cgroup": f"/{slices}/{unit}" if unit else "/",
    }
    return Process(**{**fields, **changes})


def holder(owner: Process, mib: int | None = 70000, contained: bool = False) -> Holder:
    return Holder(owner, frozenset({0}), mib, contained)


def landscape(
    *holders: Holder, others: tuple[Process, ...] = (), main_pids: dict[str, int] | None = None
) -> Landscape:
    processes = {p.pid: p for p in (*others, *(h.process for h in holders))}
    return Landscape(processes, holders, reading(70000), main_pids or {})
