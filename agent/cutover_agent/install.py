"""Puts a deployment's files where systemd reads them, and takes them away again."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from . import environment, systemd
from .files import file_digest, read_text, remove, write_atomic
from .order import text_digest
from .store import Store

UNITS = Path("/etc/systemd/system")


@dataclass(frozen=True)
class Replaced:
    """What was there before a file was written; a roll-back puts it back."""

    path: str
    digest: str
    """SHA-256 of the text that is kept in the store; empty when there was no file."""


def refusal(store: Store, unit: str) -> Optional[str]:
    """Why the file of a unit may not be written; None when it may."""
    path = UNITS / unit
    if path.is_symlink() and str(path.resolve()) == "/dev/null":
        return f"{unit} is masked: run `systemctl unmask {unit}` or name the unit otherwise"
    ours = str(path) in store.installed() or file_digest(path) in store.put_units(unit)
    if path.is_symlink() or (path.exists() and not ours):
        return (
            f"{path} is there and was not written by cutover: "
            "move it away, or give the deployment another unit name"
        )
    return None


def install(
    store: Store, deployment: str, unit: str, unit_digest: str, env_digest: str
) -> list[Replaced]:
    """Writes unit and environment file and tells systemd; returns what they replaced.

    Files that are as wanted already are left alone.
    """
    environment.FOLDER.mkdir(mode=0o755, exist_ok=True)
    wanted = ((UNITS / unit, unit_digest, 0o644), (environment.path(deployment), env_digest, 0o600))
    replaced = []
    for path, digest, mode in wanted:
        if file_digest(path) != digest:
            replaced.append(Replaced(str(path), _save(store, path)))
            write_atomic(path, store.text(digest), mode)
        store.note_installed(path, digest)
    if replaced:
        systemd.call("daemon-reload")
    return replaced


def put_back(store: Store, replaced: list[Replaced]) -> None:
    """Undoes an install."""
    for was in reversed(replaced):
        path = Path(was.path)
        if was.digest:
            write_atomic(path, store.text(was.digest), 0o644 if path.parent == UNITS else 0o600)
        else:
            remove(path)
        store.note_installed(path, was.digest)
    if replaced:
        systemd.call("daemon-reload")


def retire_orphans(store: Store) -> list[str]:
    """Removes files of ours whose deployment no resource owns any more; says so, a line each.

    A unit that runs stays, with its environment: it serves until another model does.
    """
    owned = {record.deployment: record.unit for record in store.records().values()}
    kept = {str(UNITS / unit) for unit in owned.values()}
    kept |= {str(environment.path(deployment)) for deployment in owned}
    lines = []
    serving = store.serving()
    if serving and not systemd.state(serving.order.unit).down:
        order = serving.order
        kept |= {str(UNITS / order.unit), str(environment.path(order.deployment))}
        if order.deployment not in owned:
            lines.append(f"{order.unit} still serves: it stays until another model does")
    for name in sorted(set(store.installed()) - kept):
        path = Path(name)
        if path.parent == UNITS:
            systemd.call("disable", path.name, check=False)
        remove(path)
        store.note_installed(path, "")
        lines.append(f"{path} is removed")
    if lines:
        systemd.call("daemon-reload")
    if environment.FOLDER.is_dir() and not list(environment.FOLDER.iterdir()):
        environment.FOLDER.rmdir()
    return lines


def _save(store: Store, path: Path) -> str:
    """Keeps what is at a path: in the store, and by name where it was edited by hand."""
    text = read_text(path)
    if text is None:
        return ""
    if store.installed().get(str(path)) != text_digest(text):
        name = f"{path.name}.{time.strftime('%Y%m%dT%H%M%S')}"
        write_atomic(store.root / "saved" / name, text)
    return store.keep(text)
