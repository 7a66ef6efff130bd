"""What a change of inputs means for a resource and for its outputs. No effects."""

from __future__ import annotations

import re
from typing import Any

from .wire import UNKNOWN, Properties, is_secret


def changes(old: Properties, new: Properties) -> dict[str, str]:
    """The paths that differ: "ADD", "DELETE" or "UPDATE", with "_REPLACE" where that replaces."""
    found: dict[str, str] = {}
    _compare("", old, _declared(new), found)
    return {path: kind + "_REPLACE" if path == "triggers" else kind for path, kind in found.items()}


def previewed(inputs: Properties, before: Properties | None) -> Properties:
    """The outputs as far as a preview knows them; `before` is the state that an update has."""
    results = {"stdout": UNKNOWN, "stderr": UNKNOWN}
    if before is None:
        return {**inputs, **results}
    # An input that is new does not count, to the real plugin either.
    earlier = {key: value for key, value in before.items() if key not in results}
    runs = UNKNOWN in inputs.values() or any(
        inputs.get(key) != value for key, value in earlier.items()
    )
    return {**inputs, **(results if runs else {key: before[key] for key in results})}


def top(path: str) -> str:
    """The property that a path starts with."""
    return re.split(r"[.\[]", path, maxsplit=1)[0]


def _declared(inputs: Properties) -> Properties:
    """Without what Pulumi adds for itself."""
    return {
        key: value for key, value in inputs.items() if key != "version" and not key.startswith("__")
    }


def _compare(path: str, old: Any, new: Any, found: dict[str, str]) -> None:
    if isinstance(old, list) and isinstance(new, list):
        pairs = {
            f"{path}[{i}]": (old[i : i + 1], new[i : i + 1]) for i in range(max(len(old), len(new)))
        }
    elif (
        isinstance(old, dict)
        and isinstance(new, dict)
        and not is_secret(old)
        and not is_secret(new)
    ):
        pairs = {
            _member(path, key): ([old[key]] if key in old else [], [new[key]] if key in new else [])
            for key in old | new
        }
    else:
        if old != new:
            found[path] = "UPDATE"
        return
    for inner, (before, after) in pairs.items():
        if before and after:
            _compare(inner, before[0], after[0], found)
        else:
            found[inner] = "DELETE" if before else "ADD"


def _member(path: str, key: str) -> str:
    if not re.fullmatch(r"\w*", key):
        escaped = key.replace('"', '\\"')
        return f'{path}["{escaped}"]'
    return f"{path}.{key}" if path else key
