"""The services of the host, as facts for a plan."""

from __future__ import annotations

import re

from .holders import Service
from .systemd import call

_FIELDS = "Id,MainPID,ActiveState,UnitFileState,Restart,User,ExecStart,Job"
_COMMAND = re.compile(r"argv\[\]=(.*?) ;")
_OWN = "systemd-"


def read_services() -> dict[str, Service]:
    """Every loaded service that may serve a model, by name."""
    listed = call("list-units", "--type=service", "--all", "--plain", "--full", "--no-legend")
    asked = worth_asking(listed)
    return parse_services(call("show", *asked, f"--property={_FIELDS}")) if asked else {}


def worth_asking(listed: str) -> list[str]:
    """Names from `systemctl list-units`: all that do anything, and those that might at the next
    boot. Systemd takes 1 ms to describe a service, and most of a host's are inactive and its own,
    masked or not there.
    """
    units = [line.split() for line in listed.splitlines() if line.strip()]
    return [
        name
        for name, load, active, *_ in units
        if active != "inactive" or (load == "loaded" and not name.startswith(_OWN))
    ]


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
