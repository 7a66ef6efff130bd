"""What a run of the comparisons prints and keeps."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.comparison import OURS, Comparison

FORM = "{:<58} {:>10} {:<22} {:>10} {:>7}  {}"


def lines(one: Comparison) -> list[str]:
    """A row for each other way; our own figure stands in the first."""
    ours = f"{one.medians[OURS]:.3g} {one.unit}"
    verdict = "MISSED: " + "; ".join(one.missed) if one.missed else ""
    if not verdict and (one.limits or one.limit is not None):
        verdict = "kept"
    rows = [
        (way, f"{one.medians[way]:.3g} {one.unit}", f"{ratio:.2f}")
        for way, ratio in one.ratios.items()
    ] or [("", "", "")]
    first, *rest = [
        FORM.format(*((one.name, ours) if number == 0 else ("", "")), *row, "")
        for number, row in enumerate(rows)
    ]
    return [line.rstrip() for line in (first + verdict, *rest)]


def heading() -> str:
    """The names of the columns."""
    return FORM.format("", "ours", "beside", "", "ratio", "").rstrip()


def machine() -> dict[str, Any]:
    """What this machine is, as far as it bears on the figures."""
    memory = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    processors = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in processors if "model name" in line]
    return {
        "processor": models[0] if models else platform.machine(),
        "cores": os.cpu_count(),
        "memory_gib": round(int(memory["MemTotal"].split()[0]) / 2**20, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load": [round(each, 1) for each in os.getloadavg()],
    }


def keep(found: Sequence[Comparison], file: Path, before: dict[str, Any]) -> None:
    """Write build/bench.json; `before` is what the machine was like at the start."""
    file.parent.mkdir(parents=True, exist_ok=True)
    content = {"machine": before, "comparisons": [one.to_json() for one in found]}
    file.write_text(json.dumps(content, indent=2) + "\n")
