"""Warm weights: the next checkpoint is read into memory while the old model serves.

Whatever goes wrong here is a warning: a load from the disk takes longer, and works.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from . import checkpoint, launch, systemd, warm_report
from .clock import Deadline, now, wait_for
from .converge import decide, look
from .facts import memory_mib
from .follow import say
from .order import Order
from .prefetch import Prefetch
from .residency import resident
from .store import Store

RESERVE = 0.1
"""Share of the host's memory that stays for everything else."""
TELL_SECONDS = 5.0
WEIGHTS = (".safetensors", ".bin", ".pt", ".gguf")


def step(store: Store, order: Order) -> None:
    """Has the host read the checkpoint, if that is wanted, fits, and a model is about to load."""
    if order.warm.why_not:
        say(f"{order.deployment} is not read ahead: {order.warm.why_not}")
    if not order.warm.read:
        return
    try:
        if decide(order, "released", look(store, order)) != "start":
            return
        warm_report.forget(store)
        launch.warming(order.deployment)
        _follow(store, order)
    except (OSError, ValueError, subprocess.SubprocessError, systemd.SystemdError) as problem:
        say(f"warning: {order.deployment} is not read ahead: {problem}")


def _follow(store: Store, order: Order) -> None:
    told, quiet = "", Deadline(TELL_SECONDS)

    def over() -> bool:
        nonlocal told, quiet
        # Taken before the report is read: if the unit ends in between, its last word is there.
        down = systemd.state(launch.WARMING).down
        line = str(warm_report.load(store).get("line", ""))
        if line and line != told and (down or quiet.passed):
            told, quiet = line, Deadline(TELL_SECONDS)
            say(f"{order.deployment}: {line}")
        return down

    # It has a deadline of its own, in the unit.
    if not wait_for(over, Deadline(order.deadlines.load + launch.WARMING_MARGIN), 0.2):
        systemd.call("stop", launch.WARMING, check=False)
        say(f"warning: reading {order.deployment} ahead took too long and is ended")
    elif not warm_report.load(store).get("over"):
        say(f"warning: {order.deployment} is not read ahead: see journalctl -u {launch.WARMING}")


def run(store: Store) -> None:
    """In the unit: reads the staged order's checkpoint, and reports."""
    order = store.staged()
    if order is None:
        return
    deadline, paths = Deadline(order.deadlines.load), weights(order)
    size, before = sum(path.stat().st_size for path in paths), resident(paths)
    memory = {name: mib << 20 for name, mib in memory_mib().items()}
    reason = why_not(size, size - before, memory["available"], memory["total"])
    if reason:
        warm_report.save(store, order, {"line": f"not read ahead: {reason}", "over": True})
        return
    last = now()

    def tell(done: int) -> None:
        nonlocal last
        if now() - last > TELL_SECONDS:
            last = now()
            warm_report.save(
                store, order, {"line": f"{amount(before + done)} of {amount(size)} in memory"}
            )

    reading = Prefetch(paths, order.warm.mib_per_second << 20, deadline)
    reading.run(tell)
    there = resident(paths)
    share = there / size if size else 1.0
    line = f"{int(share * 100)} % of {amount(size)} in memory"
    figures = {
        "line": line,
        "over": True,
        "percent": round(share * 100, 1),
        "bytes": size,
        "read_bytes": reading.read_bytes,
        "seconds": round(deadline.spent, 3),
    }
    warm_report.save(store, order, figures)
    print(f"{order.deployment}: {line}", flush=True)


def weights(order: Order) -> list[Path]:
    """Files of the checkpoint and its draft in the order in which engines read them."""
    found = []
    for name in filter(None, (order.checkpoint, order.files.draft)):
        facts, place = checkpoint.read(name), Path(name)
        names = facts.index or [file for file in facts.files if file.endswith(WEIGHTS)]
        found += [place / file for file in sorted(names)] if place.is_dir() else [place]
    return found


def why_not(size: int, missing: int, available: int, total: int) -> str:
    """Why a checkpoint is not read, all in bytes; empty where it fits."""
    spare = available - int(RESERVE * total)
    if missing <= spare:
        return ""
    return (
        f"{amount(missing)} of its {amount(size)} would have to fit into {amount(max(0, spare))}, "
        f"which is the memory that is available less {RESERVE:.0%} of all"
    )


def amount(size: int) -> str:
    """Bytes for people, in the units in which checkpoints are told."""
    gigabytes = size / 1e9
    if gigabytes < 1:
        return f"{size / 1e6:.0f} MB"
    return f"{gigabytes:.1f} GB" if gigabytes < 10 else f"{gigabytes:.0f} GB"
