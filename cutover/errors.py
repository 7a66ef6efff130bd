"""One clear sentence for everything that can be wrong in a file that an operator wrote."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from cutover.fields import ModelError, field_at, model_at

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

MOST_SENTENCES = 3
MOST_SHOWN = 60


class ConfigError(ValueError):
    """What an operator has to correct: one sentence a fault, the first three of them in order."""

    def __init__(self, *sentences: str) -> None:
        self.sentences = sorted(set(sentences))
        super().__init__("\n".join(self.sentences[:MOST_SENTENCES]))


def config_error(error: ValidationError, model: type[BaseModel], file: str) -> ConfigError:
    """Says in our words what pydantic found; values of fields marked secret are never shown."""
    return ConfigError(
        *(sentence for fault in error.errors() for sentence in _sentences(fault, model, file))
    )


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """What to write instead of an unknown name: the most similar one, or all there are."""
    import difflib

    known = list(names)
    similar = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {similar[0]}?" if similar else f"there is {', '.join(known) or 'none'}"


def _sentences(fault: Any, model: type[BaseModel], file: str) -> list[str]:
    path = tuple(part for part in fault["loc"] if part != "[key]")
    problem = fault.get("ctx", {}).get("error")
    if isinstance(problem, ModelError):
        return [_join(file, path + inner, text) for inner, text in problem.faults]
    return [_join(file, path, _predicate(fault, path, model, problem))]


def _predicate(fault: Any, path: tuple[Any, ...], model: type[BaseModel], problem: Any) -> str:
    if problem is not None and fault["type"] == "value_error":
        return str(problem)
    if fault["type"] in ("extra_forbidden", "invalid_key"):
        parent = model_at(model, path[:-1])
        names = [name for name, field in parent.model_fields.items() if not field.exclude]
        return f"is unknown: {did_you_mean(str(path[-1]), names)}"
    field = field_at(model, path)
    hints = field.json_schema_extra if field else None
    allowed = hints.get("allowed") if isinstance(hints, dict) else None
    advice = f"give {allowed}" if allowed else "give a mapping of fields to values"
    if fault["type"] == "missing":
        return f"is missing: {advice}"
    if fault["type"] == "too_short":
        return f"is empty: {advice}"
    secret = isinstance(hints, dict) and hints.get("secret")
    hidden = secret or fault["type"] in ("model_type", "dict_type")
    shown = "this value" if hidden else _shown(fault["input"])
    return f"{shown} is not allowed: {advice}"


def _join(file: str, path: tuple[Any, ...], text: str) -> str:
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return f"{file}: {where.removeprefix('.')}: {text}" if path else f"{file}: {text}"


def _shown(value: Any) -> str:
    """The value as YAML would have it; containers by their kind, since they may hold a secret."""
    if isinstance(value, list) and not all(isinstance(item, int) for item in value):
        return "a list"
    if isinstance(value, dict):
        return "a mapping"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"
