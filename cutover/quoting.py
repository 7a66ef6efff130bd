"""How a value is written so that systemd hands the very same bytes to the process.

Unit files and environment files differ: in a unit `%` starts a specifier, in ExecStart= `$` starts
a variable, and both know C escapes; an environment file knows none of these, and quotes as a shell.
"""

from __future__ import annotations

import re

_BARE = re.compile(r"[A-Za-z0-9_%$@+=:,./-]+")
_CONTROL = re.compile(r"[\x01-\x1f\x7f]")
_SHELL_SPECIAL = re.compile(r'(["\\`$])')


def exec_argument(value: str) -> str:
    """One element of ExecStart=."""
    return _word(value.replace("%", "%%").replace("$", "$$"))


def assignment(name: str, value: str) -> str:
    """One variable of Environment=, where `$` means nothing."""
    return _word(f"{name}={value}".replace("%", "%%"))


def path_word(value: str) -> str:
    """A path where systemd expects a list of words, as in RequiresMountsFor=."""
    return _word(value.replace("%", "%%"))


def raw_line(value: str) -> str:
    """Text up to the end of the line, as in Description= and WorkingDirectory=: never quoted."""
    return value.replace("%", "%%")


def environment_file_line(name: str, value: str) -> str:
    """One variable of a file for EnvironmentFile=; the quotes are not part of the value."""
    return f'{name}="{_SHELL_SPECIAL.sub(_backslashed, _checked(value))}"'


def _word(text: str) -> str:
    if _BARE.fullmatch(_checked(text)):
        return text
    # JSON stays readable in single quotes.
    quote = "'" if '"' in text and "'" not in text else '"'
    escaped = re.sub(rf"([\\{quote}])", _backslashed, text)
    return quote + _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", escaped) + quote


def _backslashed(match: re.Match[str]) -> str:
    return "\\" + match[0]


def _checked(text: str) -> str:
    if "\0" in text:
        raise ValueError("a NUL character cannot be written for systemd")
    return text
