"""Reading YAML so that what an operator wrote is what we get."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from cutover.errors import ConfigError

_TAG = "tag:yaml.org,2002:"


class Decimal(float):
    """A number with a point, which prints as it was written: `0.90` stays `0.90`."""

    written: str

    def __str__(self) -> str:
        return self.written


class _Loader(yaml.SafeLoader):
    """Safe YAML; no key twice, and text such as `010`, `1:30` or a date stays text."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != f"{_TAG}merge":
                if key.value in seen:
                    raise yaml.MarkedYAMLError(None, None, f"{key.value} twice", key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def _decimal(loader: _Loader, node: yaml.ScalarNode) -> Decimal:
    number = Decimal(node.value)
    number.written = node.value
    return number


_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern)
        for tag, pattern in resolvers
        if tag.removeprefix(_TAG) not in ("int", "float", "timestamp")
    ]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(f"{_TAG}int", re.compile(r"(0|-?[1-9][0-9]*)$"), list("-0123456789"))
_Loader.add_implicit_resolver(
    f"{_TAG}float",
    re.compile(r"-?(0|[1-9][0-9]*)\.[0-9]+([eE][-+]?[0-9]+)?$"),
    list("-0123456789"),
)
_Loader.add_constructor(f"{_TAG}float", _decimal)


def read_mapping(path: Path, shown: str) -> dict[Any, Any]:
    """The mapping that a YAML file holds; `shown` names the file in ConfigError's sentence."""
    try:
        value = yaml.load(path.read_text(encoding="utf-8"), _Loader)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigError(f"{shown}: cannot be read ({reason}): correct it") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{shown}: is not text in UTF-8: save it as such") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"line {mark.line + 1}: " if mark else ""
        raise ConfigError(f"{shown}: {line}not valid YAML ({error.problem}): correct it") from None
    except (yaml.YAMLError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"{shown}: not valid YAML ({reason}): correct it") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{shown}: holds no mapping: give fields with their values")
    return value
