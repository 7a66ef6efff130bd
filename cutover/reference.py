"""Writes what is generated from the models: the catalogue's page, and the schema for editors.

python3 -m cutover.reference
"""

from __future__ import annotations

import json
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from cutover.additions import BREAKS, WARNED, WRITTEN
from cutover.deployment import Deployment
from cutover.engine_names import releases

DOCS = Path(__file__).resolve().parent.parent / "docs"
_HINTS = ("allowed", "secret")


def main() -> None:
    """Writes both files."""
    for name, text in files().items():
        (DOCS / name).write_text(text, encoding="utf-8")


def files() -> dict[str, str]:
    """Both texts by their names in the folder `docs`."""
    return {"deployment.schema.json": schema(), "catalogue.md": page()}


def schema() -> str:
    """JSON schema of one file of the catalogue; editors complete and check with it."""
    found = Deployment.model_json_schema()
    found["title"] = "A deployment of the catalogue"
    del found["properties"]["name"]
    found["required"].remove("name")
    _tidy(found)
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


def _tidy(value: Any) -> None:
    """Our own hints become part of the description."""
    if isinstance(value, dict):
        allowed, _ = (value.pop(hint, None) for hint in _HINTS)
        if isinstance(allowed, str):
            value["description"] = f"{value['description']} Give {allowed}."
        for inner in value.values():
            _tidy(inner)
    elif isinstance(value, list):
        for inner in value:
            _tidy(inner)


def page() -> str:
    """The page for operators."""
    intro = (Path(__file__).with_name("reference.md")).read_text(encoding="utf-8")
    known = "\n".join(f"- {engine} {', '.join(releases(engine))}" for engine in ("vllm", "sglang"))
    parts = [intro.replace("RELEASES\n", f"{known}\n"), "## Fields\n"]
    for path, model in _models("", Deployment):
        if path:
            parts.append(f"### `{path}`\n\n{(model.__doc__ or '').splitlines()[0]}\n")
        parts.append(_table(model))
    parts.append("## Raw additions that are refused\n")
    parts.append(_list({**WRITTEN, **BREAKS}))
    parts.append("## Raw additions that are warned about\n")
    parts.append(_list(WARNED))
    return "\n".join(parts)


def _models(path: str, model: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel]]]:
    yield path, model
    for name, field in model.model_fields.items():
        inner = _inner(field.annotation)
        if inner:
            yield from _models(f"{path}.{name}".lstrip("."), inner)


def _inner(kind: Any) -> type[BaseModel] | None:
    """The model in an annotation such as `X | None`, `list[X]` or `dict[str, X]`."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind
    found = (_inner(part) for part in typing.get_args(kind))
    return next((model for model in found if model), None)


def _table(model: type[BaseModel]) -> str:
    rows = ["| field | what it is for | give | left out |", "| --- | --- | --- | --- |"]
    for name, field in model.model_fields.items():
        if not field.exclude:
            hints = field.json_schema_extra
            allowed = hints.get("allowed") if isinstance(hints, dict) else ""
            cells = (f"`{name}`", field.description, allowed, _default(field))
            rows.append("| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows) + "\n"


def _default(field: FieldInfo) -> str:
    value = field.default
    if value is PydanticUndefined:
        return "has to be given"
    if value is None or value in ({}, [], ""):
        return "nothing"
    if isinstance(value, BaseModel):
        return "see below"
    if isinstance(value, tuple):
        return f"{len(value)}"
    return f"`{json.dumps(value)}`"


def _list(reasons: dict[str, str]) -> str:
    return "\n".join(f"- `{name}` {reason}" for name, reason in reasons.items()) + "\n"


if __name__ == "__main__":
    main()
