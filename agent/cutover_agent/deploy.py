"""The agent's own files on the host."""

from __future__ import annotations

import compileall
import hashlib
import os
import shutil
import sys
import zipfile
from pathlib import Path

from . import lock, recovery, systemd
from .files import read_text, write_atomic
from .install import UNITS
from .store import Store

LIBRARY = Path("/usr/local/lib/cutover")
LINK = Path("/usr/local/bin/cutover")
KEEP = 2
"""Versions that stay: the newest, and the one that a running transaction may still use."""


def settle(archive: Path) -> None:
    """Makes an archive that was just written the agent of this host."""
    archive.chmod(0o755)
    _compile(archive)
    temporary = LINK.with_name(".cutover.new")
    temporary.unlink(missing_ok=True)
    LINK.parent.mkdir(parents=True, exist_ok=True)
    temporary.symlink_to(archive)
    os.rename(temporary, LINK)
    versions = sorted(LIBRARY.glob("*.pyz"), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in [path for path in versions if path != archive][KEEP - 1 :]:
        old.unlink()
        shutil.rmtree(old.with_suffix(""), ignore_errors=True)
    _settle_recovery()


def _compile(archive: Path) -> None:
    """Leaves the archive's modules beside it, compiled: Python keeps no bytecode of an archive."""
    folder = archive.with_suffix("")
    if folder.exists():
        return
    temporary = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(temporary, ignore_errors=True)
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(temporary)
    compileall.compile_dir(str(temporary), ddir=str(folder), quiet=2)
    os.rename(temporary, folder)


def _settle_recovery() -> None:
    path = UNITS / recovery.UNIT
    if read_text(path) != recovery.TEXT:
        write_atomic(path, recovery.TEXT, 0o644)
        systemd.call("daemon-reload")
    systemd.call("enable", recovery.UNIT)


def difference(name: str) -> str:
    """What of the archive of that name, or of what finishes its work, is not as `settle` left it;
    empty where all is, or nothing was settled yet.
    """
    archive = Path(os.path.realpath(LINK))
    if name and (archive.stem != name or not is_whole(archive)):
        return "the agent on the host is not the one that was installed"
    # Another version, which is not installed here, may know another text.
    unit, ours = UNITS / recovery.UNIT, own_archive() == archive
    is_there = read_text(unit) == recovery.TEXT if ours else unit.is_file()
    starts = (UNITS / "multi-user.target.wants" / recovery.UNIT).is_symlink()
    if name and not (is_there and starts):
        return f"{recovery.UNIT} is not as it was installed: nothing finishes what breaks off"
    return ""


def is_whole(archive: Path) -> bool:
    """Whether an archive is there and holds what its name, the start of its digest, says."""
    try:
        return hashlib.sha256(archive.read_bytes()).hexdigest().startswith(archive.stem)
    except OSError:
        return False


def remove(store: Store) -> None:
    """Takes the agent and its memory off the host."""
    systemd.call("disable", recovery.UNIT, check=False)
    (UNITS / recovery.UNIT).unlink(missing_ok=True)
    systemd.call("daemon-reload")
    LINK.unlink(missing_ok=True)
    shutil.rmtree(LIBRARY, ignore_errors=True)
    shutil.rmtree(store.root, ignore_errors=True)
    shutil.rmtree(lock.FOLDER, ignore_errors=True)


def own_archive() -> Path:
    """The archive that this process runs from."""
    return Path(os.path.realpath(sys.argv[0]))
