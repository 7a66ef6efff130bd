"""What nvidia-smi says; a reading that is not complete is never taken for one."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from typing import Optional

QUERY_SECONDS = 60
"""Without the persistence daemon a query on a box of 8 cards takes about half a minute."""

_UUID = re.compile(r"(GPU|MIG)-[0-9A-Fa-f-]+")


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
    for line in filter(None, (line.strip() for line in stdout.splitlines())):
        parts = [part.strip() for part in line.split(",")]
        if len(parts) != 3 or not parts[0].isdigit() or not _UUID.fullmatch(parts[1]):
            return Reading(tuple(rows), f"nvidia-smi says: {line[:200]}")
        if not parts[2].isdigit():
            return Reading(tuple(rows), f"GPU {parts[0]}: memory used reads {parts[2]!r}")
        rows.append(Gpu(int(parts[0]), parts[1], int(parts[2])))
    if code != 0:
        said = (stderr or stdout).strip().splitlines()
        return Reading(tuple(rows), f"nvidia-smi exits {code}: {said[-1][:200] if said else ''}")
    if not rows:
        return Reading((), "nvidia-smi lists no GPU")
    if len({gpu.index for gpu in rows}) != len(rows) or len({gpu.uuid for gpu in rows}) != len(
        rows
    ):
        return Reading(tuple(rows), "nvidia-smi lists a GPU twice")
    return Reading(tuple(rows))


def parse_rows(code: int, stdout: str) -> Optional[tuple[Row, ...]]:
    """Compute processes from `--query-compute-apps=pid,gpu_uuid,used_memory`; None if unknown."""
    if code != 0:
        return None
    rows: list[Row] = []
    for line in filter(None, (line.strip() for line in stdout.splitlines())):
        parts = [part.strip() for part in line.split(",")]
        if len(parts) != 3 or not parts[0].isdigit():
            return None
        mib = int(parts[2]) if parts[2].isdigit() else None
        rows.append(Row(int(parts[0]), parts[1], mib))
    return tuple(rows)


def read_gpus(seconds: float = QUERY_SECONDS) -> Reading:
    """Asks for every GPU's memory; slow is not broken, but a hang is a problem."""
    code, out, err = _ask("--query-gpu=index,uuid,memory.used", seconds)
    return parse_gpus(code, out, err)


def read_rows(seconds: float = QUERY_SECONDS) -> Optional[tuple[Row, ...]]:
    """Asks for the compute processes; None where there is no trustworthy answer."""
    code, out, _ = _ask("--query-compute-apps=pid,gpu_uuid,used_memory", seconds)
    return parse_rows(code, out)


def _ask(query: str, seconds: float) -> tuple[int, str, str]:
    command = ["nvidia-smi", query, "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds
        )
    except FileNotFoundError:
        return 127, "", "it is not installed on this host"
    except subprocess.TimeoutExpired:
        return 124, "", f"no answer after {seconds:.0f} s"
    return done.returncode, done.stdout, done.stderr
