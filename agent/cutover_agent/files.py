"""Files that are whole or absent, whatever interrupts the writer."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, Optional


def write_atomic(path: Path, text: str, mode: int = 0o600) -> None:
    """Writes a file so that a crash leaves the old text or the new one, never a part."""
    lay_out(path, text, mode)
    put_in_place(path)


def lay_out(path: Path, text: str, mode: int = 0o600) -> None:
    """Writes a file's text beside it, on disk, so that all that is left is a rename."""
    temporary = beside(path)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, mode)
    try:
        with open(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)  # the umask may have taken bits away
            file.write(text.encode(errors="surrogateescape"))
            file.flush()
            os.fsync(descriptor)
    except OSError:
        temporary.unlink(missing_ok=True)  # on a full disk it would take the last room
        raise


def put_in_place(path: Path) -> None:
    """Makes the text that was laid out the file's own."""
    os.rename(beside(path), path)
    _sync_folder(path.parent)


def beside(path: Path) -> Path:
    """Where a file's next text is laid out; no program takes it for one of its files."""
    return path.with_name(f".{path.name}.new")


def remove(path: Path) -> None:
    """Removes a file that may already be gone."""
    path.unlink(missing_ok=True)
    if path.parent.is_dir():
        _sync_folder(path.parent)


def read_text(path: Path) -> Optional[str]:
    """A file's text, byte for byte, or None where there is no such file."""
    try:
        return path.read_bytes().decode(errors="surrogateescape")
    except FileNotFoundError:
        return None


def read_json(path: Path, absent: Any) -> Any:
    """A JSON file's value, or `absent` where there is no such file."""
    text = read_text(path)
    return absent if text is None else json.loads(text)


def write_json(path: Path, value: Any) -> None:
    """Writes a JSON file atomically, readable by root only."""
    write_atomic(path, json.dumps(value, indent=1, sort_keys=True) + "\n")


def file_digest(path: Path) -> Optional[str]:
    """SHA-256 of a regular file, or None where there is none; links are not followed."""
    if path.is_symlink() or not path.is_file():
        return None
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
