"""The runbook file: the text that was put, and below it what only this host knows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional

from .attempt import Attempt, Journal
from .files import file_digest, read_json, remove, write_atomic, write_json
from .moments import DOWN, describe
from .order import text_digest
from .store import Serving, Store, name_of

MOST_LINES = 20
"""Cutovers that the history shows; `cutover log` has them all."""
LEAST_SECONDS = 0.1
"""A part that took less is not worth a word."""


def put(store: Store, owner: str, path: str, text: str) -> dict[str, Any]:
    """Keeps the text for its owner and writes the file; nothing that runs is touched."""
    known = _known(store)
    if known.get("path") not in (None, path):
        _take_away(known)
        known = {}
    _save(store, {"written": {}, **known, "owner": owner, "path": path, "text": text})
    where = write(store)
    return {"receipt": text_digest(text)[:12], "runbook": where}


def is_kept(store: Store) -> bool:
    """Whether a runbook was put here."""
    return bool(_known(store))


def drop(store: Store, owner: str) -> None:
    """The owner is deleted: takes our file away, never a handwritten one."""
    known = _known(store)
    if name_of(known.get("owner", "")) == name_of(owner):
        _take_away(known)
        remove(store.root / "runbook.json")


def write(store: Store) -> str:
    """Writes the file anew, with the history as it is now; gives its path, empty without one."""
    known = _known(store)
    if not known:
        return ""
    path = _place(known)
    text = known["text"] + history(store.serving(), attempts(store))
    path.parent.mkdir(parents=True, exist_ok=True)
    if file_digest(path) != text_digest(text):
        # Noted first: a crash in between leaves a file that is known as ours, or none.
        _save(store, {**known, "written": {str(path): text_digest(text)}})
        write_atomic(path, text, 0o644)
    return str(path)


def history(serving: Optional[Serving], attempts: Sequence[tuple[str, Attempt]]) -> str:
    """What serves and what happened, newest first, as Markdown."""
    lines = ["", "## Now", ""]
    if serving:
        order = serving.order
        lines.append(f"{order.deployment} serves at {order.probe.url} since {_at(serving.since)}.")
        lines += [f"- {line}" for line in serving.evidence.get("environment", [])]
    else:
        lines.append("Nothing was committed to serve yet.")
    lines += ["", "## History", ""]
    lines += [_line(name, attempt) for name, attempt in list(attempts)[:MOST_LINES]]
    return "\n".join(lines) + "\n"


def attempts(store: Store) -> list[tuple[str, Attempt]]:
    """The cutovers of this host that are over, newest first."""
    names = sorted((path.name for path in store.transactions.iterdir()), reverse=True)
    found = ((name, Journal(store, name).load()) for name in names)
    return [(name, attempt) for name, attempt in found if attempt and attempt.outcome]


def _line(name: str, attempt: Attempt) -> str:
    told = {"load_seconds": "load {} s", "tokens_per_second": "{} tokens/s",
            "down_seconds": "down {} s"}  # fmt: skip
    figures = [form.format(attempt.evidence[key]) for key, form in told.items()
               if attempt.evidence.get(key) is not None]  # fmt: skip
    cause = attempt.error.splitlines()[:1]
    line = f"- {name} {attempt.deployment}: {', '.join([attempt.outcome, *figures, *cause])}"
    phases = attempt.evidence.get("phases", {})
    parts = {part: phases[part] for part in DOWN if phases.get(part, 0) >= LEAST_SECONDS}
    return f"{line} ({describe(parts)})" if parts and "down_seconds" in attempt.evidence else line


def _place(known: dict[str, Any]) -> Path:
    """Where the file goes: beside a handwritten one, that is one which is not as we wrote it."""
    wanted = Path(known["path"])
    for path in (wanted, wanted.with_suffix(f".cutover{wanted.suffix}")):
        if not path.is_symlink() and (
            not path.exists() or known["written"].get(str(path)) == file_digest(path)
        ):
            return path
    return wanted.with_suffix(f".cutover-{text_digest(known['owner'])[:8]}{wanted.suffix}")


def _take_away(known: dict[str, Any]) -> None:
    for name, digest in known["written"].items():
        if file_digest(Path(name)) == digest:
            remove(Path(name))


def _known(store: Store) -> dict[str, Any]:
    return dict(read_json(store.root / "runbook.json", {}))


def _save(store: Store, value: dict[str, Any]) -> None:
    write_json(store.root / "runbook.json", value)


def _at(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
