"""The command line: any option is taken, since the real ones know hundreds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

Options = dict[str, list[str]]


def parse(argv: Sequence[str]) -> Options:
    """{option without dashes: its values}; a number with a minus sign is a value."""
    found: Options = {}
    values: list[str] = []
    for word in argv:
        if word.startswith("-") and not _is_number(word):
            name, separator, value = word.lstrip("-").partition("=")
            values = found.setdefault(name.replace("_", "-"), [])
            values[:] = [value] if separator else []
        else:
            values.append(word)
    return found


def with_config(options: Options) -> Options:
    """Options, those of SGLang's `--config` file added; of its YAML one quoted value a line."""
    found = dict(options)
    for path in options.get("config", []):
        for line in Path(path).read_text().splitlines():
            name, colon, value = line.partition(": ")
            if colon and not line.startswith("#"):
                found.setdefault(name.replace("_", "-"), [json.loads(value)])
    return found


def first(options: Options, names: Sequence[str], default: str = "") -> str:
    """The first value of the first of these options that is given."""
    return next((options[name][0] for name in names if options.get(name)), default)


def unknown(options: Options, known_file: str | None) -> list[str]:
    """Options that are not in a file of known ones, one a line; no file, none unknown."""
    if not known_file:
        return []
    known = Path(known_file).read_text().split()
    return [f"--{name}" for name in options if f"--{name}" not in known]


def _is_number(word: str) -> bool:
    return word[1:].replace(".", "", 1).isdigit()
