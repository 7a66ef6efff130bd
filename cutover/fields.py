"""What the models of settings and catalogue are made of: fields that know what they allow."""

from __future__ import annotations

import json
import re
import typing
from typing import Annotated, Any, NoReturn

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

LONGEST_PATH = 4095
"""Bytes that Linux takes as a path."""
LONGEST_VALUE = 131_000
"""Bytes of one argument or variable; Linux passes 128 KiB to a process, name and end included."""


class Strict(BaseModel):
    """A model that refuses what it does not know and converts nothing."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ModelError(ValueError):
    """Several things wrong inside one model: the path from there, and what is wrong with it."""

    def __init__(self, faults: list[tuple[tuple[str, ...], str]]) -> None:
        self.faults = faults
        super().__init__("; ".join(f"{'.'.join(path)}: {text}" for path, text in faults))


def setting(about: str, allowed: str, default: Any = ..., **limits: Any) -> Any:
    """A field: what it is for, and what may be given (this ends the sentence of its error)."""
    secret = limits.pop("secret", False)
    hints = {"allowed": allowed, "secret": secret}
    return Field(default, description=about, json_schema_extra=hints, repr=not secret, **limits)


def not_allowed() -> NoReturn:
    """Refuses a value with the sentence made of its field's `allowed`."""
    raise PydanticCustomError("not_allowed", "not allowed")


def model_at(model: type[BaseModel], path: tuple[Any, ...]) -> type[BaseModel]:
    """The model whose fields are named below a path that leads to one."""
    found: type[BaseModel] = _walk(model, path)[0]
    return found


def field_at(model: type[BaseModel], path: tuple[Any, ...]) -> FieldInfo | None:
    """The field at a path, or the one that it is an item of; None for the model itself."""
    return _walk(model, path)[1]


def _walk(model: type[BaseModel], path: tuple[Any, ...]) -> tuple[Any, FieldInfo | None]:
    kind: Any = model
    field: FieldInfo | None = None
    for part in path:
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            field = kind.model_fields.get(part)
            kind = field.annotation if field else None
        else:
            kind = (typing.get_args(kind) or (None,))[-1]
    return kind, field


def plain_text(value: str) -> str:
    """Accepts what every file can carry as one value: in many, a line break would end it."""
    if "\n" in value:
        raise ValueError("holds a line break: write it on one line")
    return process_text(value)


def process_text(value: str) -> str:
    """Accepts what a unit can hand to a process as one argument or variable."""
    if "\r" in value:
        raise ValueError("holds a carriage return, as files from Windows have: remove it")
    if "\0" in value:
        raise ValueError("holds a NUL character, which no process can be given: remove it")
    for letter in value:
        if not _is_systemd_text(ord(letter)):
            raise ValueError(f"holds U+{ord(letter):04X}, which systemd refuses: remove it")
    if len(value.encode()) > LONGEST_VALUE:
        raise ValueError(f"is longer than {LONGEST_VALUE} bytes: put it into a file")
    return value


def _is_systemd_text(code: int) -> bool:
    """Whether systemd takes this code point in UTF-8: no surrogates, no noncharacters."""
    surrogate, reserved = 0xD800 <= code <= 0xDFFF, 0xFDD0 <= code <= 0xFDEF
    return not (surrogate or reserved or code & 0xFFFE == 0xFFFE)


def matching(pattern: str) -> AfterValidator:
    """Refuses text that the pattern does not match from end to end."""
    compiled = re.compile(pattern, re.ASCII)
    return AfterValidator(lambda value: value if compiled.fullmatch(value) else not_allowed())


def absolute_path(value: str) -> str:
    """Accepts paths that mean the same to systemd, in a quoted argument and in a raw line."""
    parts = value.split("/")
    plain = parts[0] == "" and len(parts) > 1 and not set(parts[1:]) & {"", ".", ".."}
    odd = re.search(r"""[\x00-\x1f\x7f'"\\]""", value) or value != value.strip()
    if not plain or odd or len(plain_text(value).encode()) > LONGEST_PATH:
        not_allowed()
    return value


def legal_name(value: str) -> str:
    """Accepts the names of hosts and deployments, which become file names and resource names."""
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", value):
        raise ValueError("is not a legal name: use a-z, 0-9 and dashes inside, at most 63 letters")
    return value


def variable_name(value: str) -> str:
    """Accepts names of environment variables."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
        raise ValueError("is not a variable name: use letters, digits and underscores")
    return value


def as_text(value: Any) -> Any:
    """Undoes that `pulumi config set --path` stores some text as number or bool."""
    return json.dumps(value) if isinstance(value, (bool, int)) else value


def paragraphs(value: str) -> str:
    """Accepts text of several lines for people; it reaches no process and no unit."""
    odd = re.search(r"[\x00-\x08\x0b-\x1f\x7f]", value)
    if odd:
        raise ValueError(f"holds the control character U+{ord(odd[0]):04X}: remove it")
    return value


Name = Annotated[str, AfterValidator(legal_name)]
VariableName = Annotated[str, AfterValidator(variable_name)]
Text = Annotated[str, AfterValidator(process_text)]
Paragraphs = Annotated[str, AfterValidator(paragraphs)]
OneKey = Annotated[str, matching(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")]
AbsolutePath = Annotated[str, AfterValidator(absolute_path)]
SecretText = Annotated[str, BeforeValidator(as_text)]
UserName = Annotated[str, matching(r"[a-z_][a-z0-9_-]{0,31}")]
AN_ABSOLUTE_PATH = (
    "an absolute path without quotes, backslashes, doubled or closing slashes, `.` or `..`"
)
