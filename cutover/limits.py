"""Resource limits as systemd takes them, from the spellings that people use elsewhere."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from cutover.fields import not_allowed

_FACTOR = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_MOST_FILES = 1_073_741_816
"""The kernel's own ceiling (fs.nr_open) on 64-bit machines."""


def count(value: Any) -> int:
    """A number, or text with K, M, G or T behind it, in powers of 1024."""
    if type(value) is int and value > 0:
        return value
    match = re.fullmatch(r"([1-9][0-9]{0,12})([KMGT]?)", value) if isinstance(value, str) else None
    return int(match[1]) * _FACTOR[match[2]] if match else not_allowed()


def memlock(value: Any) -> Any:
    """LimitMEMLOCK=: `unlimited`, as PAM and shells say, is `infinity` for systemd."""
    return "infinity" if value in ("infinity", "unlimited") else count(value)


def nofile(value: Any) -> int:
    """LimitNOFILE=: enough for a server and its workers, and not above what the kernel takes."""
    number = count(value)
    return number if 1024 <= number <= _MOST_FILES else not_allowed()


_SIZE = {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string"}]}
Memlock = Annotated[int | str, BeforeValidator(memlock), WithJsonSchema(_SIZE)]
Nofile = Annotated[int, BeforeValidator(nofile), WithJsonSchema(_SIZE)]
