"""Asks nvidia-smi. A cutover asks one thing at a time: some hosts take half a minute for it."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from typing import Optional

from . import health
from .gpus import Reading, Row, parse_gpus, parse_rows

QUERY_SECONDS = 60
"""Without the persistence daemon a query on a box of 8 cards takes about half a minute: that is
slow. What takes longer than this is broken."""


def read_gpus(seconds: float = QUERY_SECONDS) -> Reading:
    """Asks for every GPU's memory; slow is not broken, but a hang is a problem."""
    return parse_gpus(*_ask("--query-gpu=index,uuid,memory.used", seconds))


def read_rows(seconds: float = QUERY_SECONDS) -> Optional[tuple[Row, ...]]:
    """Asks for the compute processes; None where there is no trustworthy answer."""
    code, out, _ = _ask("--query-compute-apps=pid,gpu_uuid,used_memory", seconds)
    return parse_rows(code, out)


def read_health(seconds: float = QUERY_SECONDS) -> list[dict[str, str]]:
    """What each GPU says about itself; a field that this driver does not know is left out."""
    fields = list(health.FIELDS)
    while True:
        code, out, err = _ask(f"--query-gpu={','.join(fields)}", seconds)
        unknown = health.unknown_field(code, out + err)
        if unknown not in fields:
            return health.parse(fields, out) if code == 0 else []
        fields.remove(unknown)


def _ask(query: str, seconds: float) -> tuple[int, str, str]:
    command = ["nvidia-smi", query, "--format=csv,noheader,nounits"]
    try:
        asked = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
    except FileNotFoundError:
        return 127, "", "it is not installed on this host"
    except OSError as error:
        return 126, "", f"it cannot be run on this host ({error.strerror})"
    try:
        out, err = asked.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        asked.kill()
        with suppress(subprocess.TimeoutExpired):  # it may hang in the driver, killed or not
            asked.communicate(timeout=1)
        return 124, "", f"no answer after {seconds:.0f} s"
    return asked.returncode, out, err
