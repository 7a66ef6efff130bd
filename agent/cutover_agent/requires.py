"""Files that have to be as patched: an upgrade that undid a patch is found before a switch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Optional

from .order import Requirement


def reasons(requires: Iterable[Requirement], digests: Mapping[str, Optional[str]]) -> list[str]:
    """What is not as required; `digests` are of the files as they are, None for none."""
    found = []
    for required in requires:
        digest = digests[required.path]
        if digest is None:
            found.append(f"{required.path} is required, and is not there: put the patched file")
        elif digest != required.sha256:
            found.append(
                f"{required.path} is not as patched: an upgrade may have undone the patch, apply "
                f"it again, or declare this file in `requires`: `sha256: {digest}`"
            )
    return found


def digests(requires: Iterable[Requirement]) -> dict[str, Optional[str]]:
    """SHA-256 of each required file; links are followed, since engines follow them."""
    return {required.path: _digest(required.path) for required in requires}


def _digest(path: str) -> Optional[str]:
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return None
