"""How this engine is to behave: /etc/practice/engine.json over the defaults.

    {"load_seconds": 1.0, "modules": {"vllm": {...}},
     "models": {"minimax-m25": {"crash": "loading"}}}

A model (by any of its served names) outranks a module (vllm, sglang), that outranks the top level.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FILE = Path("/etc/practice/engine.json")

DEFAULTS: dict[str, Any] = {
    # how it loads
    "load_seconds": 1.0,
    "compile_seconds": 0.0,
    "capture_seconds": 0.0,
    "context_mib": 600,  # on each GPU before any weight is read
    "gpu_mib": 72500,  # on each GPU once it serves
    "known_options": None,  # a file: refuse options that are not in it
    # what goes wrong, at "starting", "loading" or "serving" (misbehaviour.py)
    "crash": None,
    "hang": None,
    "error": "out_of_memory",  # what a crash says
    # how it answers
    "token_seconds": 0.002,
    "answer": None,  # instead of the right one
    "never_answers": False,
    "health_status": 200,
    "served_as": None,  # a model name instead of the configured ones
    # how it ends
    "stop_seconds": 0.0,
    "ignore_term": False,
    "orphans": True,  # workers outlive a main process that is killed
}


def read(module: str, served: Sequence[str]) -> dict[str, Any]:
    """The behaviour of one server."""
    said = json.loads(FILE.read_text()) if FILE.exists() else {}
    modules, models = said.pop("modules", {}), said.pop("models", {})
    merged = {**DEFAULTS, **said, **modules.get(module, {})}
    for name in served:
        merged.update(models.get(name, {}))
    if unknown := set(merged) - set(DEFAULTS):
        raise SystemExit(f"{FILE}: unknown {sorted(unknown)}; there are {sorted(DEFAULTS)}.")
    return merged
