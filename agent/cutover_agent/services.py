"""The services of the host, as facts for a plan."""

from __future__ import annotations

import re

from .holders import Service
from .systemd import call

_FIELDS = "Id,MainPID,ActiveState,UnitFileState,Restart,User,ExecStart,Job"
_COMMAND = re.compile(r"argv\[\]=(.*?) ;")


def read_services() -> dict[str, Service]:
    """Every loaded service by name."""
    return parse_services(call("show", "*.service", "--all", f"--property={_FIELDS}"))


def parse_services(shown: str) -> dict[str, Service]:
    """Services from `systemctl show`: blocks of KEY=value, an empty line between two units."""
    found = {}
    for block in shown.split("\n\n"):
        value = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        command = _COMMAND.search(value.get("ExecStart", ""))
        if value.get("Id"):
            found[value["Id"]] = Service(
                name=value["Id"],
                main_pid=int(value.get("MainPID") or 0),
                active=value.get("ActiveState", "inactive"),
                enabled=value.get("UnitFileState", ""),
                restart=value.get("Restart", "no"),
                user=value.get("User") or "root",
                command=tuple(command.group(1).split()) if command else (),
                queued=value.get("Job") not in (None, "", "0"),
            )
    return found
