"""The arguments of one option of an engine."""

from __future__ import annotations

import json
from typing import Any

from cutover.fields import process_text


def option(name: str, value: Any) -> list[str]:
    """The arguments of one option; none for false and null.

    Raises ValueError with the end of a sentence where the value cannot be an argument.
    """
    if value is None or value is False:
        return []
    flag = f"--{name}"
    if value is True:
        return [flag]
    if isinstance(value, list):
        if not value or any(item is None or isinstance(item, (bool, list)) for item in value):
            raise ValueError("is a list of something else than text and numbers: correct it")
        return [flag, *(_argument(item) for item in value)]
    argument = _argument(value)
    # Else the engine takes a value that starts with a dash for an option.
    if isinstance(value, str) and argument.startswith("-"):
        return [f"{flag}={argument}"]
    return [flag, argument]


def _argument(value: Any) -> str:
    if isinstance(value, (str, int)):
        return process_text(str(value))
    try:
        if isinstance(value, float):
            json.dumps(value, allow_nan=False)
            return str(value)
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError):
        raise ValueError("is not text, a number, a list or a mapping: write it in quotes") from None
    return process_text(text)
