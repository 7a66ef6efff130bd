"""What nvidia-smi says; a reading that is not complete is never taken for one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Optional

FULL_UUID = re.compile(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

_UUID = re.compile(r"(GPU|MIG)-[0-9A-Fa-f-]+")
_LOST = re.compile(r"GPU(?:[0-9A-Fa-f]{4,8}:)?([0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])\b")
_NUMBER = re.compile(r"[0-9]+")
_MISMATCH = "driver/library version mismatch"


@dataclass(frozen=True)
class Gpu:
    """One GPU in a reading."""

    index: int
    uuid: str
    used_mib: int


@dataclass(frozen=True)
class Reading:
    """One answer of nvidia-smi about all GPUs."""

    gpus: tuple[Gpu, ...]
    problem: str = ""
    """Why the reading cannot be trusted; empty when it can."""

    @property
    def total_mib(self) -> int:
        """Memory used on all GPUs together, in MiB."""
        return sum(gpu.used_mib for gpu in self.gpus)

    @property
    def used(self) -> dict[int, int]:
        """MiB used by index."""
        return {gpu.index: gpu.used_mib for gpu in self.gpus}

    @property
    def index_of(self) -> dict[str, int]:
        """Index by UUID."""
        return {gpu.uuid: gpu.index for gpu in self.gpus}


@dataclass(frozen=True)
class Row:
    """One compute process in nvidia-smi's list."""

    pid: int
    uuid: str
    mib: Optional[int]
    """None where the tool does not tell."""


def parse_gpus(code: int, stdout: str, stderr: str = "") -> Reading:
    """A reading from the output of `--query-gpu=index,uuid,memory.used`.

    Any line that is not a row of numbers makes the whole reading a problem: an error sentence
    between good rows means that a card is missing.
    """
    rows: list[Gpu] = []
    said: list[str] = []
    for line in filter(None, (line.strip() for line in stdout.splitlines())):
        parts = [part.strip() for part in line.split(",")]
        if len(parts) != 3 or not _NUMBER.fullmatch(parts[0]) or not _UUID.fullmatch(parts[1]):
            said.append(line[:200])
        elif not _NUMBER.fullmatch(parts[2]):
            problem = f"the memory of GPU {parts[0]} cannot be read: nvidia-smi says {parts[2]!r}"
            return Reading(tuple(rows), problem)
        else:
            rows.append(Gpu(int(parts[0]), parts[1], int(parts[2])))
    return Reading(tuple(rows), _problem(code, rows, said, stderr))


def _problem(code: int, rows: list[Gpu], said: list[str], stderr: str) -> str:
    words = said + [line.strip()[:200] for line in stderr.splitlines() if line.strip()]
    lost = sorted({place for line in words for place in _LOST.findall(line)})
    if lost:
        there, all_of_them = len(rows), len(rows) + len(lost)
        return f"{there} of {all_of_them} GPUs answered, {', '.join(lost)} lost: {words[0]}"
    if any(_MISMATCH in line.lower() for line in words):
        return (
            f"{words[0]}: the driver was updated under the running kernel module, so no model can "
            "start until the host is rebooted; what runs goes on until then"
        )
    if said:
        return f"nvidia-smi says: {said[0]}"
    if code != 0:
        return f"nvidia-smi exits {code}: {words[-1] if words else 'it says nothing'}"
    if not rows:
        return "nvidia-smi lists no GPU"
    if min(len({gpu.index for gpu in rows}), len({gpu.uuid for gpu in rows})) != len(rows):
        return "nvidia-smi lists a GPU twice"
    return ""


def parse_rows(code: int, stdout: str) -> Optional[tuple[Row, ...]]:
    """Compute processes from `--query-compute-apps=pid,gpu_uuid,used_memory`; None if unknown."""
    if code != 0:
        return None
    rows: list[Row] = []
    for line in filter(None, (line.strip() for line in stdout.splitlines())):
        parts = [part.strip() for part in line.split(",")]
        if len(parts) != 3 or not _NUMBER.fullmatch(parts[0]):
            return None
        mib = int(parts[2]) if _NUMBER.fullmatch(parts[2]) else None
        rows.append(Row(int(parts[0]), parts[1], mib))
    return tuple(rows)
