"""Drop-ins on the host that would change a unit behind our back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

FOLDERS = tuple(
    Path(folder)
    for folder in (
        "/etc/systemd/system.control",
        "/run/systemd/system.control",
        "/run/systemd/transient",
        "/etc/systemd/system",
        "/run/systemd/system",
        "/run/systemd/generator",
        "/usr/local/lib/systemd/system",
        "/usr/lib/systemd/system",
        "/lib/systemd/system",
    )
)
OURS = re.compile(r"(\d+-)?cutover(-[a-z]+)?\.conf")
"""Names of the drop-ins that this program writes itself, for as long as a trial lasts."""
ADDING = frozenset(("After", "Before", "Wants", "Documentation", "RequiresMountsFor"))
BREAKING = frozenset(
    ("PrivateDevices", "DeviceAllow", "DevicePolicy", "ProtectClock", "PrivateNetwork",
     "PrivateUsers", "PrivateIPC", "RootDirectory", "RootImage", "DynamicUser", "RemainAfterExit",
     "UnsetEnvironment", "PassEnvironment", "ExecStop", "SendSIGKILL", "TimeoutSec",
     "WatchdogSec")
)  # fmt: skip
"""Not in what we render, and yet able to break it."""


def reasons(unit: str, rendered: str, found: Mapping[str, str]) -> list[str]:
    """Drop-ins that shadow a directive of ours, by path and text; each named with what it sets."""
    mine = (directives(rendered) | BREAKING) - ADDING
    told = []
    for path, text in sorted(found.items()):
        shadowed = sorted(mine & directives(text))
        if shadowed:
            told.append(
                f"{path} changes {', '.join(shadowed)} of {unit}: put that into the deployment, "
                "and remove the drop-in"
            )
    return told


def directives(text: str) -> frozenset[str]:
    """Names of everything that a unit file or drop-in assigns."""
    joined = re.sub(r"\\\n", " ", text)
    return frozenset(re.findall(r"^\s*([A-Za-z][A-Za-z0-9]*)\s*=", joined, re.M))


def names(unit: str) -> list[str]:
    """Folders of drop-ins that apply to a unit: its own, those of its prefixes, its type's."""
    stem, _, kind = unit.rpartition(".")
    parts = stem.split("-")
    prefixes = ["-".join(parts[:n]) + f"-.{kind}.d" for n in range(len(parts) - 1, 0, -1)]
    return [f"{unit}.d", *prefixes, f"{kind}.d"]


def on_host(unit: str) -> dict[str, str]:
    """Every drop-in of a unit that is not ours, by path; linked folders are read once."""
    found: dict[str, str] = {}
    for folder in FOLDERS:
        for name in names(unit):
            for path in sorted((folder / name).glob("*.conf")):
                if not OURS.fullmatch(path.name) and path.is_file():
                    found.setdefault(str(path.resolve()), path.read_text(errors="replace"))
    return found


def masked(unit: str) -> list[str]:
    """Why the unit could not be started at all: a mask that ends with the boot.

    One that stays is at the place of the unit file itself, and is found where that is written.
    """
    path = Path("/run/systemd/system") / unit
    if not path.is_symlink() or str(path.resolve()) != "/dev/null":
        return []
    return [f"{unit} is masked ({path}): run `systemctl unmask --runtime {unit}`"]
