"""Reads unit files as systemd does, as far as comparing two of them needs it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "s": " "}
_HEX = re.compile(r"x([0-9a-fA-F]{2})")


@dataclass(frozen=True)
class Service:
    """What decides which process runs, and how the rest is written."""

    argv: tuple[str, ...]
    user: str
    folder: str
    variables: dict[str, str]
    files: tuple[str, ...]
    """Paths of EnvironmentFile=, in order."""
    lines: dict[str, list[str]] = field(default_factory=dict)
    """Every directive of every section, with all its values."""


class Unreadable(ValueError):
    """A unit that only systemd itself could tell the meaning of."""


def read_service(text: str) -> Service:
    """Reads the text of a unit, drop-ins after it; raises Unreadable where it cannot."""
    lines = directives(text)
    commands = lines.get("ExecStart", [])
    if len(commands) != 1:
        raise Unreadable(f"it has {len(commands)} commands in ExecStart=")
    variables: dict[str, str] = {}
    for line in lines.get("Environment", []):
        for word in words(line):
            name, _, value = word.partition("=")
            variables[name] = value
    return Service(
        argv=tuple(words(commands[0])),
        user=_last(lines, "User") or "root",
        folder=_last(lines, "WorkingDirectory") or "/",
        variables=variables,
        files=tuple(path.lstrip("-") for path in lines.get("EnvironmentFile", [])),
        lines=lines,
    )


def directives(text: str) -> dict[str, list[str]]:
    """Values by directive; an empty assignment forgets those before it."""
    found: dict[str, list[str]] = {}
    for line in joined(text):
        name, equals, value = line.partition("=")
        if not equals:
            continue
        name, value = name.strip(), value.strip()
        found[name] = [*found.get(name, []), value] if value else []
    return found


def joined(text: str) -> list[str]:
    """Lines without comments, those that end with a backslash put together."""
    found, open_line = [], ""
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith(("#", ";")) or (not line and not open_line):
            continue
        if line.endswith("\\"):
            open_line += line[:-1] + " "
            continue
        found.append(open_line + line)
        open_line = ""
    return found


def words(value: str) -> list[str]:
    """A value's words without quotes and escapes; raises Unreadable at a specifier (`%h`)."""
    found: list[str] = []
    word, quote, inside, position = "", "", False, 0
    while position < len(value):
        letter = value[position]
        position += 1
        if letter == "\\" and position < len(value):
            code = _HEX.match(value, position)
            word += (
                chr(int(code[1], 16)) if code else _ESCAPES.get(value[position], value[position])
            )
            position += len(code[0]) if code else 1
        elif quote:
            quote, word = ("", word) if letter == quote else (quote, word + letter)
        elif letter in "'\"":
            quote, inside = letter, True
        elif letter.isspace():
            found += [word] if word or inside else []
            word, inside = "", False
        else:
            word += letter
    found += [word] if word or inside else []
    return [_without_specifiers(each) for each in found]


def _without_specifiers(word: str) -> str:
    if re.search(r"(?<!%)(%%)*%(?!%)", word):
        raise Unreadable(f"it uses a specifier in {word[:40]}")
    return word.replace("%%", "%")


def _last(lines: dict[str, list[str]], name: str) -> str:
    values = lines.get(name, [])
    return values[-1] if values else ""
