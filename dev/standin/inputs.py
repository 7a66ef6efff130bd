"""Which inputs a remote command has, what is filled in, and what is wrong with them. No effects."""

from __future__ import annotations

from typing import Any, NamedTuple

from .wire import UNKNOWN, Properties, is_secret, revealed, secret

_DEFAULTS = {"user": "root", "port": 22, "dialErrorLimit": 10, "perDialTimeout": 15}
_HIDDEN = ("password", "privateKey", "privateKeyPassword")

Fields = dict[str, Any]
_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "bool": bool,
    "float64": (int, float),
    "[]interface {}": list,
    "map[string]string": dict,
}
_PROXY: Fields = {
    **dict.fromkeys(("host", "user", "agentSocketPath", "hostKey", *_HIDDEN), "string"),
    **dict.fromkeys(("port", "dialErrorLimit", "perDialTimeout"), "float64"),
}
_INPUTS: Fields = {
    **dict.fromkeys(("create", "update", "delete", "stdin", "logging"), "string"),
    "triggers": "[]interface {}",
    "environment": "map[string]string",
    "addPreviousOutputInEnv": "bool",
    "connection": {**_PROXY, "proxy": _PROXY},
}


class Failure(NamedTuple):
    """An input that is wrong."""

    field: str
    reason: str


def checked(inputs: Properties) -> tuple[Properties, list[Failure]]:
    """The inputs with the connection's defaults and secret marks, and what is wrong with them."""
    wrong = _failures("remote.CommandInputs", revealed(inputs), _INPUTS)
    inputs = dict(inputs)
    if "connection" in inputs:
        inputs["connection"] = secret(_connection(inputs["connection"], {} if wrong else _DEFAULTS))
    return inputs, wrong


def _failures(kind: str, values: Properties, fields: Fields) -> list[Failure]:
    found = [
        Failure(name, f"Missing required field '{name}' on '{kind}'")
        for name in ("connection", "host")
        if name in fields and name not in values
    ]
    for name, value in values.items():
        expected = fields.get(name)
        if expected is None:
            found.append(Failure(name, f"Unrecognized field '{name}' on '{kind}'"))
        elif isinstance(expected, dict) and isinstance(value, dict):
            found += [
                Failure(
                    name,
                    f"An error occurred decoding 'CommandInputs.{name}': "
                    f"1 failures decoding:\n\t{field}: {reason}",
                )
                for field, reason in _failures("remote.Connection", value, expected)
            ]
        elif value != UNKNOWN and not isinstance(
            value, dict if isinstance(expected, dict) else _TYPES[expected]
        ):
            reason = f"Field '{name}' on '{kind}' must be a '{expected}'"
            found.append(Failure(name, f"{reason}; got '{_go_type(value)}' instead"))
    return found


def _go_type(value: Any) -> str:
    return {str: "string", bool: "bool", float: "float64"}.get(type(value), "object")


def _connection(value: Any, defaults: Properties) -> Any:
    if is_secret(value):
        return secret(_connection(value["value"], defaults))
    if not isinstance(value, dict):
        return value
    filled = {**defaults, **value}
    for key in _HIDDEN:
        if key in filled:
            filled[key] = secret(filled[key])
    if "proxy" in filled:
        filled["proxy"] = _connection(filled["proxy"], defaults)
    return filled
