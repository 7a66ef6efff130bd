"""What single fields of a deployment accept."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from cutover.fields import matching, not_allowed, plain_text
from cutover.option import option

MOST_GPUS = 16
SECONDS = "whole seconds from 1 to 86400"


def option_name(value: str) -> str:
    """Accepts an option without its dashes."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*(\.[A-Za-z0-9_+-]+)*", value):
        spelt = value.strip("-").replace("_", "-").lower()
        raise ValueError(f"is not the name of an option: write it without dashes, as `{spelt}`")
    return value


def option_value(value: Any) -> Any:
    """Accepts what can be written as the arguments of one option."""
    option("option", value)
    return value


def gpu_names(value: Any) -> Any:
    """Turns a count into the indices from 0 on; accepts a list of indices, or one of UUIDs."""
    if type(value) is int and 1 <= value <= MOST_GPUS:
        return tuple(range(value))
    if not isinstance(value, list):
        return not_allowed()
    for name in value:
        if isinstance(name, str) and name.upper().startswith("MIG-"):
            raise ValueError(f"holds {name}, a slice of a GPU: give whole GPUs")
    kinds = {type(item) for item in value}
    if kinds == {int, str}:
        raise ValueError("mixes indices and UUIDs: name all the GPUs in one way")
    names = [item.lower().replace("gpu-", "GPU-", 1) for item in value] if kinds == {str} else value
    legal = kinds in ({int}, {str}) and all(_names_a_gpu(name) for name in names)
    if not legal or len(set(names)) < len(names) or len(names) > MOST_GPUS:
        not_allowed()
    return tuple(names)


def _names_a_gpu(name: int | str) -> bool:
    if isinstance(name, int):
        return 0 <= name < MOST_GPUS
    return re.fullmatch(r"GPU-[0-9a-f][0-9a-f-]{0,35}", name) is not None


def listen_host(value: str) -> str:
    """Accepts an address or a host name; takes the brackets off."""
    bare = value[1:-1] if value.startswith("[") and value.endswith("]") else value
    if re.fullmatch(r"[a-z]([a-z0-9.-]*[a-z0-9])?", bare):
        return bare
    try:
        return str(ip_address(bare)) if "%" not in bare else not_allowed()
    except ValueError:
        return not_allowed()


def one_line(value: str) -> str:
    """Accepts what can stand alone on a line of a unit."""
    # A backslash at the end would join the next line of the unit to this one.
    text = plain_text(value)
    return text if text.strip() and not text.endswith("\\") else not_allowed()


def switch(value: Any) -> Any:
    """Undoes that YAML reads a bare `on` or `off` as a truth value."""
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else value


def unit_name(value: str) -> str:
    """Accepts names of services that are not the agent's own."""
    legal = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9:_.-]{0,200}\.service", value)
    return value if legal and not value.startswith("cutover") else not_allowed()


_SEVERAL = {"type": "array", "minItems": 1, "maxItems": MOST_GPUS, "uniqueItems": True}
_COUNT_OR_NAMES = {
    "anyOf": [
        {"type": "integer", "minimum": 1, "maximum": MOST_GPUS},
        {**_SEVERAL, "items": {"type": "integer", "minimum": 0, "maximum": MOST_GPUS - 1}},
        {**_SEVERAL, "items": {"type": "string", "pattern": "^GPU-[0-9A-Fa-f-]+$"}},
    ]
}
_VALUE = {"type": ["string", "number", "boolean", "array", "object", "null"]}

ServedName = Annotated[str, matching(r"/?[A-Za-z0-9][A-Za-z0-9._:/@+-]*")]
OptionName = Annotated[str, AfterValidator(option_name)]
OptionValue = Annotated[Any, AfterValidator(option_value), WithJsonSchema(_VALUE)]
UrlPath = Annotated[str, matching(r"/[A-Za-z0-9._~/-]*")]
OptionText = Annotated[str, matching(r"[A-Za-z0-9][A-Za-z0-9._-]*")]
Seconds = Annotated[int, Field(ge=1, le=86400)]
Gpus = Annotated[
    tuple[int, ...] | tuple[str, ...], BeforeValidator(gpu_names), WithJsonSchema(_COUNT_OR_NAMES)
]
ListenHost = Annotated[str, AfterValidator(listen_host)]
OneLine = Annotated[str, AfterValidator(one_line)]
UnitName = Annotated[str, AfterValidator(unit_name)]
