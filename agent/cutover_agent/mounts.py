"""Which mounts a path needs, and whether they are there."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

FSTAB = Path("/etc/fstab")
MOUNTINFO = Path("/proc/self/mountinfo")
UNITS = Path("/etc/systemd/system")


def reasons(paths: Iterable[str], declared: str, expected: set[str], there: set[str]) -> list[str]:
    """Mounts that are missing; `expected` are those that the host itself has set up."""
    found = [f"{declared} is not mounted, and the deployment declares it"] if declared else []
    if declared in there:
        found = []
    for path in paths:
        for point in expected - there - {declared}:
            if path == point or path.startswith(f"{point}/"):
                found.append(f"{point} is not mounted, and {path} is on it: run `mount {point}`")
    return sorted(set(found))


def expected() -> set[str]:
    """Mount points of fstab and of hand-written mount units; what systemd generates is fstab's."""
    points = set()
    for line in FSTAB.read_text().splitlines() if FSTAB.exists() else []:
        parts = line.split()
        if len(parts) > 2 and not line.lstrip().startswith("#") and parts[1].startswith("/"):
            points.add(_plain(parts[1]))
    for unit in UNITS.glob("*.mount"):
        text = unit.read_text(errors="replace") if unit.is_file() else ""
        points.update(re.findall(r"^\s*Where\s*=\s*(/\S*)", text, re.M))
    return {point.rstrip("/") for point in points} - {""}


def there() -> set[str]:
    """What is mounted now; an automount that waits counts, since looking mounts it."""
    return {_plain(line.split()[4]) for line in MOUNTINFO.read_text().splitlines()}


def _plain(text: str) -> str:
    """Undoes the octal escapes of blanks."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
