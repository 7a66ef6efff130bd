"""Where a deployment's secret environment lies on the host, and how a value is read from it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Optional

FOLDER = Path("/etc/cutover")

_VARIABLE = re.compile(r'^(\w+)=(?:"((?:[^"\\]|\\.)*)"|([^\n]*))$', re.M | re.S)
"""A quoted value may run over several lines, and what looks like a variable there is none."""
_TELLING = 6
"""Shorter lines of a secret of several, such as a brace, are not masked on their own."""


def path(deployment: str) -> Path:
    """The file that the deployment's unit names in EnvironmentFile=."""
    return FOLDER / f"{deployment}.env"


def value(text: str, name: str) -> Optional[str]:
    """One variable of an environment file as the program writes it."""
    return next((found for known, found in _variables(text) if known == name), None)


def _variables(text: str) -> Iterator[tuple[str, str]]:
    for match in _VARIABLE.finditer(text):
        name, quoted, bare = match.groups()
        yield name, bare if quoted is None else re.sub(r"\\(.)", r"\1", quoted, flags=re.S)


def line(name: str, text: str) -> str:
    """One variable as `value` and systemd read it; the quotes are not part of it."""
    return f'{name}="' + re.sub(r'(["\\`$])', r"\\\1", text) + '"'


def mask(environment_text: str, text: str) -> str:
    """A text of the host with every secret value of the environment file taken out."""
    values = {found for _, found in _variables(environment_text) if found}
    # A log shows a secret of several lines line by line.
    values |= {line for found in values for line in found.split("\n") if len(line) >= _TELLING}
    # The longest first, and all in one go: else the rest of one shows, or a mask is masked.
    secrets = sorted((re.escape(secret) for secret in values), key=len, reverse=True)
    return re.sub("|".join(secrets), "[secret]", text) if secrets else text
