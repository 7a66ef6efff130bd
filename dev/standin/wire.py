"""Properties between Pulumi and a plugin: plain JSON, with marks for secret and unknown values."""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING, Any

from google.protobuf import json_format, struct_pb2

if TYPE_CHECKING:
    from pulumi.runtime.proto import (
        engine_pb2,
        engine_pb2_grpc,
        plugin_pb2,
        provider_pb2,
        provider_pb2_grpc,
    )
else:
    # Every preview starts a plugin, and all of `pulumi` takes twice as long to import.
    sys.path.append(importlib.util.find_spec("pulumi").submodule_search_locations[0] + "/runtime")
    from proto import (
        engine_pb2,
        engine_pb2_grpc,
        plugin_pb2,
        provider_pb2,
        provider_pb2_grpc,
    )

__all__ = ["engine_pb2", "engine_pb2_grpc", "plugin_pb2", "provider_pb2", "provider_pb2_grpc"]

Properties = dict[str, Any]

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
_KIND = "4dabf18193072939515e22adb298388d"
_SECRET = "1b47061264138c4ac30d75fd1eb44270"


def read(struct: struct_pb2.Struct) -> Properties:
    """The properties in a message, without those that are null."""
    properties: Properties = _without_nulls(json_format.MessageToDict(struct))
    return properties


def write(properties: Properties) -> struct_pb2.Struct:
    """The message for some properties."""
    struct = struct_pb2.Struct()
    struct.update(properties)
    return struct


def is_secret(value: Any) -> bool:
    """Whether the value itself (not one inside it) is marked secret."""
    return isinstance(value, dict) and value.get(_KIND) == _SECRET


def secret(value: Any) -> Any:
    """The value, marked secret once."""
    return value if is_secret(value) else {_KIND: _SECRET, "value": value}


def revealed(value: Any) -> Any:
    """The value without any secret mark, at any depth."""
    if is_secret(value):
        return revealed(value["value"])
    if isinstance(value, dict):
        return {key: revealed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [revealed(item) for item in value]
    return value


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
