"""Views of checkpoints: a folder of links, with edited copies of some JSON files."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .order import Edit, Files

ROOT = Path("/var/cache/cutover/views")


def edited(text: str, remove: Iterable[str]) -> tuple[str, list[str]]:
    """A JSON text without these keys, and which of them it had."""
    value = json.loads(text)
    had = [key for key in remove if _take(value, key)]
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n", had


def _take(value: Any, key: str) -> bool:
    """Removes a key: along its dots, or wherever it stands when it has none."""
    first, _, rest = key.partition(".")
    if rest:
        return isinstance(value, dict) and first in value and _take(value[first], rest)
    had = isinstance(value, dict) and first in value
    if had:
        del value[first]
    for inner in value.values() if isinstance(value, dict) else _items(value):
        had = _take(inner, key) or had
    return had


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def contents(
    checkpoint: str, names: Iterable[str], texts: Mapping[str, str], edits: Iterable[Edit]
) -> tuple[dict[str, str], dict[str, str]]:
    """What a view holds: links by name, and texts of the edited files by name."""
    changed = {e.file: edited(texts[e.file], e.remove)[0] for e in edits if e.file in texts}
    links = {name: f"{checkpoint}/{name}" for name in names if name not in changed}
    return links, changed


def reasons(checkpoint: str, files: Files) -> list[str]:
    """Why the view cannot be made: a JSON file that is not there, or is none."""
    found = []
    for edit in files.edits:
        path = Path(checkpoint) / edit.file
        try:
            edited(path.read_text(encoding="utf-8"), edit.remove)
        except FileNotFoundError:
            found.append(f"{path} is to be edited, and is not there: correct checkpoint_edits")
        except (OSError, ValueError) as error:
            found.append(f"{path} is to be edited, and cannot be read as JSON: {error}")
    return found


def make(checkpoint: str, files: Files) -> list[str]:
    """Makes the view, or leaves it as it is when it is right; says what was edited.

    The checkpoint is only read. A view is complete or absent: it is made beside and renamed.
    """
    if not files.view:
        return []
    view, place = Path(files.view), Path(checkpoint)
    texts = {edit.file: (place / edit.file).read_text(encoding="utf-8") for edit in files.edits}
    links, changed = contents(checkpoint, os.listdir(checkpoint), texts, files.edits)
    if not _is_right(view, links, changed):
        fresh = view.with_name(f".{view.name}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        for folder in (ROOT.parent, ROOT, view.parent, fresh):
            folder.mkdir(exist_ok=True)
            folder.chmod(0o755)  # the umask may have taken bits away, and the service user reads
        for name, target in links.items():
            (fresh / name).symlink_to(target)
        for name, text in changed.items():
            (fresh / name).write_text(text, encoding="utf-8")
            (fresh / name).chmod(0o644)
        if view.exists():
            shutil.rmtree(view)
        fresh.rename(view)
    return [_told(edit, texts[edit.file], view) for edit in files.edits]


def retire(kept: Iterable[str]) -> None:
    """Removes every view but these, and the folders that are then empty."""
    wanted = set(kept)
    for view in ROOT.glob("*/*"):
        if str(view) not in wanted:
            shutil.rmtree(view)
    for folder in (*ROOT.glob("*"), ROOT, ROOT.parent):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def _told(edit: Edit, text: str, view: Path) -> str:
    had = edited(text, edit.remove)[1]
    if not had:
        return f"{edit.file} has none of {', '.join(edit.remove)}: it is served as it is"
    return f"{edit.file} is served without {', '.join(had)}, from {view}"


def _is_right(view: Path, links: Mapping[str, str], changed: Mapping[str, str]) -> bool:
    if not view.is_dir() or {*os.listdir(view)} != {*links, *changed}:
        return False
    return all(
        (view / n).is_symlink() and os.readlink(view / n) == t for n, t in links.items()
    ) and all((view / n).read_text(encoding="utf-8") == t for n, t in changed.items())
