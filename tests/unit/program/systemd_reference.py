"""Systemd's reading of unit and environment files, written down from its manual pages.

Small and literal on purpose: it is the other side of the quoting, and shares no code with it.
"""

from __future__ import annotations

ESCAPES = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "s": 32}
BLANK = " \t\n\r"


def directives(unit: str) -> list[tuple[str, str]]:
    """Name and value of every assignment: comments dropped, continued lines joined by a blank."""
    found = []
    joined = ""
    for line in unit.split("\n"):
        text = line.strip(BLANK) if not joined else line
        if line.lstrip(BLANK)[:1] in ("#", ";"):
            continue
        backslashes = len(text) - len(text.rstrip("\\"))
        if backslashes % 2:
            joined += text[:-1] + " "
            continue
        text, joined = (joined + text).strip(BLANK), ""
        if text and not text.startswith("["):
            name, _, value = text.partition("=")
            found.append((name.rstrip(BLANK), value.lstrip(BLANK)))
    return found


def words(text: str) -> list[tuple[str, bool]]:
    """The words of a value, C escapes and quotes resolved, and whether each was plain text."""
    found: list[tuple[str, bool]] = []
    position = 0
    while position < len(text):
        if text[position] in BLANK:
            position += 1
            continue
        word, plain, quote = bytearray(), True, ""
        while position < len(text) and (quote or text[position] not in BLANK):
            letter = text[position]
            position += 1
            if letter == "\\":
                plain = False
                code, position = _escape(text, position)
                word += code
            elif quote:
                if letter == quote:
                    quote = ""
                else:
                    word += letter.encode()
            elif letter in "'\"":
                plain, quote = False, letter
            else:
                word += letter.encode()
        assert not quote, f"unbalanced quotes in {text!r}"
        found.append((word.decode(), plain))
    return found


def _escape(text: str, position: int) -> tuple[bytes, int]:
    letter = text[position]
    if letter in ESCAPES:
        return bytes([ESCAPES[letter]]), position + 1
    if letter in "\\'\"":
        return letter.encode(), position + 1
    assert letter == "x", f"unknown escape in {text!r}"
    return bytes([int(text[position + 1 : position + 3], 16)]), position + 3


def without_specifiers(text: str) -> str:
    """`%%` is one `%`; any other specifier would be replaced, so there must be none."""
    halves = text.split("%%")
    assert not any("%" in half for half in halves), f"a specifier in {text!r}"
    return "%".join(halves)


def exec_argv(value: str) -> list[str]:
    """What a process gets from ExecStart=, with an empty environment to take variables from."""
    argv = []
    for word, plain in words(value):
        assert not (plain and word == ";"), "a second command"
        argv.append(_without_variables(without_specifiers(word)))
    return argv


def _without_variables(text: str) -> str:
    halves = text.split("$$")
    assert not any("$" in half for half in halves), f"a variable in {text!r}"
    return "$".join(halves)


def environment(unit: str) -> dict[str, str]:
    """The variables that all Environment= lines of a unit set."""
    found = {}
    for name, value in directives(unit):
        if name == "Environment":
            for word, _ in words(value):
                key, _, text = without_specifiers(word).partition("=")
                found[key] = text
    return found


def argv_of(unit: str) -> list[str]:
    """The arguments of the unit's only command."""
    (command,) = (value for name, value in directives(unit) if name == "ExecStart")
    return exec_argv(command)


def environment_file(text: str) -> dict[str, str]:
    """The variables of a file for EnvironmentFile=, double quotes only."""
    found = {}
    rest = text
    while rest:
        if rest[0] in "#;\n":
            rest = rest.partition("\n")[2]
            continue
        name, _, rest = rest.partition("=")
        assert rest.startswith('"')
        value, position = "", 1
        while rest[position] != '"':
            if rest[position] == "\\" and rest[position + 1] in '"\\`$':
                position += 1
            value += rest[position]
            position += 1
        assert rest[position + 1] == "\n"
        found[name], rest = value, rest[position + 2 :]
    return found
