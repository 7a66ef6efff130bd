"""Small legal facts that a test changes in one place."""

from __future__ import annotations

from typing import Any

import pytest

from cutover_agent import clock, gate
from cutover_agent.gpus import Gpu, Reading
from cutover_agent.holders import Holder, Landscape, Service
from cutover_agent.order import Order, Probe
from cutover_agent.policy import Rules
from cutover_agent.processes import Process
from cutover_agent.scope import Scope

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


def holder(owner: Process, mib: int | None = 70000, *gpus: int, listed: bool = True) -> Holder:
    """A holder of GPU 0, or of these; `listed` when nvidia-smi says so."""
    on = gpus or (0,)
    shares = {index: (mib or 0) // len(on) for index in on} if listed and mib else {}
    return Holder(owner, frozenset(on), mib, shares)


def scope(seen: Reading, *gpus: int, host_gpus: int | None = None, idle_mib: int = 0) -> Scope:
    """All GPUs of the reading, or those."""
    chosen = tuple(gpu for gpu in seen.gpus if not gpus or gpu.index in gpus)
    count = len(seen.gpus) if host_gpus is None else host_gpus
    return Scope("gpu-box", count, chosen, idle_mib)


def rules(**changes: Any) -> Rules:
    fields: dict[str, Any] = {"gpus": frozenset(range(8))}
    return Rules(**{**fields, **changes})


def landscape(
    *holders: Holder,
    others: tuple[Process, ...] = (),
    main_pids: dict[str, int] | None = None,
    services: tuple[Service, ...] = (),
    seen: Reading | None = None,
) -> Landscape:
    processes = {p.pid: p for p in (*others, *(h.process for h in holders))}
    known = {name: Service(name, pid, "active") for name, pid in (main_pids or {}).items()}
    known.update({service.name: service for service in services})
    return Landscape(processes, holders, seen or reading(70000), known)


class HandClock:
    """A clock for the gate that stands still but for what sleeps, and for what a test adds."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        for module in (clock, gate):
            patch.setattr(module, "now", lambda: self.now)
        patch.setattr("time.sleep", self.add)

    def add(self, seconds: float) -> None:
        """Lets time pass."""
        self.now += seconds
