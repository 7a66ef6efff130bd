"""One worker: one GPU, its share of the weights, until it is told to end."""

from __future__ import annotations

import os
import signal
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from practice_gpu import TOTAL_MIB, Allocation, used_mib

from practice_engine import misbehaviour, weights
from practice_engine.segments import Segments
from practice_engine.style import Style
from practice_engine.tree import Tree


@dataclass(frozen=True)
class Task:
    """What all workers of a server have in common."""

    style: Style
    behaviour: dict[str, Any]
    models: list[Path]
    gpus: list[int]


def work(task: Task, rank: int, tree: Tree) -> int:
    """Load, say so, and hold everything until a signal comes."""
    segments = Segments()

    def stop(*_: object) -> None:
        segments.remove()
        os._exit(0)

    ignore = task.behaviour["ignore_term"]
    signal.signal(signal.SIGTERM, signal.SIG_IGN if ignore else stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        load(task, rank, segments)
        tree.tell_ready()
        time.sleep(1)
        if rank == 0:
            misbehaviour.reach("serving", task.behaviour)
    except Exception as error:
        report(task.style, rank, error)
        return 1
    while True:
        signal.pause()


def load(task: Task, rank: int, segments: Segments) -> None:
    """Take GPU memory as a real worker does: a context first, then weights as they are read."""
    style, behaviour, gpu = task.style, task.behaviour, task.gpus[rank]
    need, role = behaviour["gpu_mib"], style.role(rank)
    memory = Allocation(gpu)
    free = TOTAL_MIB - used_mib(gpu)
    if free < need:
        raise misbehaviour.EngineError(
            "ValueError" if style.name == "vllm" else "RuntimeError",
            f"Free memory on device cuda:{gpu} ({free / 1024:.2f}/{TOTAL_MIB / 1024:.2f} GiB) on "
            f"startup is less than desired GPU memory utilization ({need / 1024:.2f} GiB). "
            "Decrease GPU memory utilization or reduce GPU memory used by other processes.",
        )
    memory.resize(behaviour["context_mib"])
    segments.add("nccl-")
    if rank == 0:
        misbehaviour.reach("starting", behaviour)
        style.log(role, f"Loading model from {task.models[0]}", "gpu_model_runner.py:3562")
    shards = [shard for model in task.models for shard in weights.shards_of(model)]
    progress, started = weights.Progress(len(shards)), time.monotonic()
    if rank == 0:
        progress.show(0, f"({role} pid={os.getpid()}) " if style.name == "vllm" else "")
    share = rank, len(task.gpus)
    for done in weights.read_shards(shards, share, behaviour["load_seconds"]):
        grown = (need - behaviour["context_mib"]) * done // len(shards)
        memory.resize(behaviour["context_mib"] + grown)
        if rank == 0:
            progress.show(done, f"({role} pid={os.getpid()}) " if style.name == "vllm" else "")
            if done == (len(shards) + 1) // 2:
                misbehaviour.reach("loading", behaviour)
    took = time.monotonic() - started
    time.sleep(behaviour["compile_seconds"] + behaviour["capture_seconds"])
    if rank == 0:
        style.tell_load(
            role, need, took, behaviour["compile_seconds"], behaviour["capture_seconds"]
        )


def report(style: Style, rank: int, error: Exception) -> None:
    """Print the traceback as the engine prints that of a worker."""
    kind = error.kind if isinstance(error, misbehaviour.EngineError) else type(error).__name__
    frames = "".join(traceback.format_tb(error.__traceback__))
    text = f"Traceback (most recent call last):\n{frames}{kind}: {error}"
    if style.name == "vllm":
        where = "multiproc_executor.py:822"
        style.log(style.role(rank), f"WorkerProc failed to start.\n{text}", where, "ERROR")
    else:
        style.log(style.role(rank), f"Scheduler hit an exception: {text}")
