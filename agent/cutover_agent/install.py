"""Puts a deployment's files where systemd reads them, and takes them away again."""

from __future__ import annotations

import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Optional

from . import environment, key_file, systemd
from .files import beside, file_digest, lay_out, put_in_place, read_text, remove, write_atomic
from .order import OrderError, text_digest
from .store import Store

UNITS = Path("/etc/systemd/system")
CAPTURED = "cutover-captured.service"
"""The unit that a server started by hand becomes, so that there is a way back to it."""


@dataclass(frozen=True)
class Replaced:
    """What was there before a file was written; a roll-back puts it back."""

    path: str
    digest: str
    """SHA-256 of the text that is kept in the store; empty when there was no file."""
    mode: int = 0
    """Its permissions; 0 where we wrote it, and so know them."""


def by_hand(store: Store, unit: str) -> bool:
    """Whether somebody else wrote the file under that name."""
    path = UNITS / unit
    if path.is_symlink() or not path.is_file() or str(path) in store.installed():
        return False
    return file_digest(path) not in store.put_units(unit)


def refusal(store: Store, unit: str) -> Optional[str]:
    """Why the file of a unit may not be written; None when it may."""
    path = UNITS / unit
    if path.is_symlink() and str(path.resolve()) == "/dev/null":
        return f"{unit} is masked: run `systemctl unmask {unit}` or name the unit otherwise"
    if path.is_symlink() or (by_hand(store, unit) and systemd.state(unit).down):
        return (
            f"{path} is there and was not written by cutover: "
            "move it away, or give the deployment another unit name"
        )
    return None


def refusals(store: Store, units: Iterable[str]) -> list[str]:
    """Why files of these units may not be written; empty when they all may."""
    return [reason for unit in sorted(units) if (reason := refusal(store, unit))]


@dataclass(frozen=True)
class Prepared:
    """Files that are laid out beside those that they replace: what is left are renames."""

    deployment: str
    unit_digest: str
    replaced: tuple[Replaced, ...]
    """What there is now of every file that changes or goes."""
    laid_out: tuple[Path, ...]
    drop_ins: tuple[Path, ...]
    """What goes."""
    has_key: bool
    """Whether one of the files is for the service's user alone."""
    by_hand: str
    """The unit, where its file is somebody else's until it is replaced; else empty."""


def install(
    store: Store,
    deployment: str,
    unit: str,
    unit_digest: str,
    env_digest: str,
) -> list[Replaced]:
    """Writes unit and environment file and tells systemd; returns what they replaced.

    Files that are as wanted already are left alone.
    """
    prepared = prepare(store, deployment, unit, unit_digest, env_digest)
    put(store, prepared)
    return list(prepared.replaced)


def prepare(
    store: Store,
    deployment: str,
    unit: str,
    unit_digest: str,
    env_digest: str,
    note: Callable[[list[Replaced]], None] = lambda replaced: None,
    drop_ins: Sequence[Path] = (),
) -> Prepared:
    """Does all of an install but the renames and systemd's reload: no file is replaced yet.

    `note` gets what will be replaced before anything is written. `drop_ins` are those of a unit
    written by hand: they go with it.
    """
    environment.FOLDER.mkdir(mode=0o755, exist_ok=True)
    extra = key_file.wanted(store, deployment, unit_digest, env_digest)
    wanted = [
        (UNITS / unit, unit_digest, _mode(unit)),
        (environment.path(deployment), env_digest, 0o600),
        *((path, digest, 0o600) for path, digest in extra.items()),
    ]
    changed = [item for item in wanted if file_digest(item[0]) != item[1]]
    theirs = {UNITS / unit, *drop_ins} if by_hand(store, unit) else set()
    replaced = [
        Replaced(str(path), _save(store, path), _permissions(path) if path in theirs else 0)
        for path in (*(path for path, _, _ in changed), *drop_ins)
    ]
    note(replaced)
    with _or_put_back(store, replaced):
        # Known as ours first: a power cut must not leave a file that nobody owns.
        for path, digest, _ in wanted:
            if path not in theirs:  # the release stops it as what it is: a unit of somebody else
                store.note_installed(path, digest)
        for path, digest, mode in changed:
            lay_out(path, store.text(digest), mode)
    return Prepared(
        deployment,
        unit_digest,
        tuple(replaced),
        tuple(path for path, _, _ in changed),
        tuple(drop_ins),
        bool(extra),
        unit if theirs else "",
    )


def put(store: Store, prepared: Prepared) -> None:
    """Puts the files in place, and tells systemd where any of them is new."""
    with _or_put_back(store, prepared.replaced):
        if prepared.by_hand:
            store.note_installed(UNITS / prepared.by_hand, prepared.unit_digest)
        for path in prepared.laid_out:
            put_in_place(path)
        for path in prepared.drop_ins:
            remove(path)
        if prepared.has_key:
            key_file.give_to_user(store, prepared.deployment, prepared.unit_digest)
        if prepared.replaced:
            systemd.call("daemon-reload")


@contextmanager
def _or_put_back(store: Store, replaced: Sequence[Replaced]) -> Iterator[None]:
    try:
        yield
    except (OSError, OrderError, systemd.SystemdError):
        with suppress(OSError, OrderError, systemd.SystemdError):
            put_back(store, replaced)
        raise


def _mode(unit: str) -> int:
    """A captured server's command line may hold its secrets."""
    return 0o600 if unit == CAPTURED else 0o644


def put_back(store: Store, replaced: Sequence[Replaced]) -> None:
    """Undoes an install, or what was prepared of it."""
    for was in reversed(replaced):
        path = Path(was.path)
        remove(beside(path))
        if was.digest:
            ours = _mode(path.name) if path.parent == UNITS else 0o600
            path.parent.mkdir(mode=0o755, exist_ok=True)
            write_atomic(path, store.text(was.digest), was.mode or ours)
        else:
            remove(path)
        store.note_installed(path, "" if was.mode else was.digest)
    if replaced:
        systemd.call("daemon-reload")


def retire_orphans(store: Store) -> list[str]:
    """Removes files of ours whose deployment no resource owns any more; says so, a line each.

    A unit that runs stays, with its environment: it serves until another model does.
    """
    # A service's record names the unit that it had at its last `up`.
    puts = [record for record in store.records().values() if record.kind != "service"]
    owned = {record.deployment: record.unit for record in puts}
    kept = {str(UNITS / unit) for unit in owned.values()}
    kept |= {str(environment.path(deployment)) for deployment in owned}
    kept |= {str(key_file.path(deployment)) for deployment in owned}
    lines = []
    serving = store.serving()
    for unit in sorted(store.units()):
        if str(UNITS / unit) not in kept and not systemd.state(unit).down:
            lines.append(f"{unit} still serves: it stays until another model does")
            kept.add(str(UNITS / unit))
            if serving and serving.order.unit == unit:
                kept.add(str(environment.path(serving.order.deployment)))
                kept.add(str(key_file.path(serving.order.deployment)))
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


def _permissions(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _save(store: Store, path: Path) -> str:
    """Keeps what is at a path: in the store, and by name where it was edited by hand."""
    text = read_text(path)
    if text is None:
        return ""
    if store.installed().get(str(path)) != text_digest(text):
        name = f"{path.name}.{time.strftime('%Y%m%dT%H%M%S')}"
        write_atomic(store.root / "saved" / name, text)
    return store.keep(text)
