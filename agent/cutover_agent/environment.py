"""Where a deployment's secret environment lies on the host, and how a value is read from it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Optional

FOLDER = Path("/etc/cutover")

_LINE = re.compile(r'^(\w+)="((?:[^"\\]|\\.)*)"$|^(\w+)=(.*)$')


def path(deployment: str) -> Path:
    """The file that the deployment's unit names in EnvironmentFile=."""
    return FOLDER / f"{deployment}.env"


def value(text: str, name: str) -> Optional[str]:
    """One variable of an environment file as the program writes it."""
    for line in text.split("\n"):
        match = _LINE.match(line)
        if match and match.group(1) == name:
            return re.sub(r"\\(.)", r"\1", match.group(2))
        if match and match.group(3) == name:
            return match.group(4)
    return None


def line(name: str, text: str) -> str:
    """One variable as `value` and systemd read it; the quotes are not part of it."""
    return f'{name}="' + re.sub(r'(["\\`$])', r"\\\1", text) + '"'


def mask(environment_text: str, text: str) -> str:
    """A text of the host with every secret value of the environment file taken out."""
    names = [line.partition("=")[0] for line in environment_text.split("\n")]
    found = {value(environment_text, name) for name in names if name[:1] != "#"} - {None, ""}
    # The longest first, and all in one go: else the rest of one shows, or a mask is masked.
    secrets = sorted((re.escape(secret) for secret in found if secret), key=len, reverse=True)
    return re.sub("|".join(secrets), "[secret]", text) if secrets else text
