"""Whether the GPUs are fit to start a model on, asked before the old one is touched."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

FIELDS = (
    "index",
    "uuid",
    "remapped_rows.pending",
    "remapped_rows.failure",
    "mig.mode.current",
    "fabric.state",
    "fabric.status",
    "gpu_recovery_action",
    "persistence_mode",
)
_UNKNOWN = re.compile(r'Field "([^"]*)" is not a valid field to query')
_YES = ("yes", "1")
# What a driver prints for a field that the card does not have.
_NOTHING = ("", "n/a", "[n/a]", "none", "[not supported]")


@dataclass(frozen=True)
class Health:
    """What the GPUs' own words mean for a cutover, a sentence each."""

    refusals: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def unknown_field(code: int, said: str) -> str:
    """The field that this driver does not know; empty where it knows all."""
    match = _UNKNOWN.search(said)
    return match.group(1) if code and match else ""


def parse(fields: Sequence[str], stdout: str) -> list[dict[str, str]]:
    """A GPU each, by field; a line that is no row is left out: the gate's reading judges those."""
    rows = []
    for line in stdout.splitlines():
        parts = [part.strip() for part in line.split(",")]
        if len(parts) == len(fields) and parts[0].isdigit():
            rows.append(dict(zip(fields, parts)))
    return rows


def judge_health(
    gpus: Sequence[dict[str, str]], wanted: Collection[str], bad_remap: str = "refuse"
) -> Health:
    """Refusals and warnings; `wanted` are the UUIDs of the GPUs that the deployment fills.

    Errors that the driver has recovered are harmless. A pending remap wants a reset some day. A
    failed one means a bad card: `bad_remap` says whether that is refused (``refuse``) or only
    told (``warn``). Of a GPU that the deployment does not use, everything is only told.
    """
    refusals: list[str] = []
    warnings: list[str] = []
    for gpu in gpus:
        bad, odd = _judge(gpu)
        used = gpu.get("uuid") in wanted
        for text, tolerated in bad:
            refused = used and not (tolerated and bad_remap == "warn")
            (refusals if refused else warnings).append(f"GPU {gpu['index']}: {text}")
        warnings += [f"GPU {gpu['index']}: {text}" for text in odd]
    return Health(tuple(refusals), tuple(warnings))


def _judge(gpu: dict[str, str]) -> tuple[list[tuple[str, bool]], list[str]]:
    """Faults, each with whether the host's settings may tolerate it, and oddities."""
    value = {name: gpu.get(name, "").lower() for name in FIELDS}
    bad: list[tuple[str, bool]] = []
    odd: list[str] = []
    if value["remapped_rows.failure"] in _YES:
        bad.append(
            ("a row remap has failed, the memory is bad: have the card replaced, or set "
             "`bad_remap: warn` for this host", True)
        )  # fmt: skip
    if value["remapped_rows.pending"] in _YES:
        odd.append("a row remap is pending: reset the GPU when nothing serves")
    if value["mig.mode.current"] == "enabled":
        bad.append(("it is partitioned (MIG): switch that off, or fill other GPUs", False))
    if value["fabric.state"] not in (*_NOTHING, "completed"):
        bad.append(
            (f"the fabric is not ready ({gpu['fabric.state']}): see nvidia-fabricmanager", False)
        )
    elif value["fabric.status"] not in (*_NOTHING, "success"):
        bad.append((f"the fabric has failed ({gpu['fabric.status']})", False))
    if value["gpu_recovery_action"] not in _NOTHING:
        odd.append(f"the driver asks for recovery ({gpu['gpu_recovery_action']})")
    return bad, odd
