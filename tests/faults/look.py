"""Runs on the practice host: what it shows at one moment, without asking the agent anything."""

from __future__ import annotations

import glob
import json
import os
import re
import subprocess
import sys
import urllib.request
from typing import Any

STORE = "/var/lib/cutover"
UNITS, ENVIRONMENTS = "/etc/systemd/system", "/etc/cutover"
TRACES = (
    "/run/systemd/system/*.d/90-cutover*",
    *(f"{folder}/.*.new" for folder in (UNITS, ENVIRONMENTS, STORE)),
    *(f"{STORE}/{below}/.*.new" for below in ("*", "*/*")),
)


def main(units: dict[str, str], canary: int) -> dict[str, Any]:
    """`units` maps a deployment to its unit; `canary` is a pid, or 0."""
    failed = _said(
        "systemctl", "list-units", "--plain", "--no-legend", "--state=failed", "cutover*"
    )
    paths = {
        name: (f"{UNITS}/{unit}", f"{ENVIRONMENTS}/{name}.env") for name, unit in units.items()
    }
    return {
        "model": _model(),
        "enabled": [one for one in units.values() if _show(one, "UnitFileState") == "enabled"],
        "running": [
            one for one in units.values() if _show(one, "ActiveState") not in ("inactive", "failed")
        ],
        "on_trial": [one for one in units.values() if _show(one, "Restart") == "no"],
        "holders": sorted({_unit_of(p) for p in os.listdir("/proc") if _holds_a_gpu(p)} - {""}),
        "left": [path for one in TRACES for path in glob.glob(one)] + failed[:1],
        "files": {name: {path: _text(path) for path in both} for name, both in paths.items()},
        "canary": not canary or os.path.exists(f"/proc/{canary}"),
        "state": _state(),
    }


def _said(*argv: str) -> list[str]:
    return subprocess.run(argv, stdout=subprocess.PIPE, text=True).stdout.split()


def _show(unit: str, name: str) -> str:
    return "".join(_said("systemctl", "show", unit, "--value", f"--property={name}"))


def _model() -> str:
    try:
        with urllib.request.urlopen("http://127.0.0.1:8000/v1/models", timeout=5) as answer:
            return str(json.load(answer)["data"][0]["id"])
    except (OSError, ValueError):
        return ""


def _holds_a_gpu(pid: str) -> bool:
    try:
        with os.scandir(f"/proc/{pid}/fd") as opened:
            return any(re.match("/dev/nvidia[0-9]", os.readlink(one.path)) for one in opened)
    except OSError:
        return False


def _unit_of(pid: str) -> str:
    found = re.findall(r"([\w@:.-]+\.service)", _text(f"/proc/{pid}/cgroup"))
    return str(found[-1]) if found else f"pid {pid}"


def _text(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def _state() -> dict[str, Any]:
    """The record of the newest transaction."""
    found = sorted(glob.glob(f"{STORE}/transactions/*/state.json"), key=os.path.getmtime)
    return dict(json.loads(_text(found[-1]) or "{}")) if found else {}


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]), int(sys.argv[2]))))
