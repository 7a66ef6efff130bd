"""Files are whole or absent, with the right mode from the first byte on."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from cutover_agent.files import (
    file_digest,
    read_json,
    read_text,
    remove,
    write_atomic,
    write_json,
)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("wanted", [0o600, 0o644, 0o755])
@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_the_mode_is_the_wanted_one_whatever_the_umask_and_the_old_file(
    tmp_path: Path, wanted: int, umask: int
) -> None:
    path = tmp_path / "a"
    path.touch(0o666)
    before = os.umask(umask)
    try:
        write_atomic(path, "text", wanted)
    finally:
        os.umask(before)
    assert (mode(path), path.read_text()) == (wanted, "text")
    assert os.listdir(tmp_path) == ["a"]


def test_a_reader_sees_the_old_text_or_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_atomic(path, "old")
    with open(path) as reader:
        write_atomic(path, "new")
        assert reader.read() == "old"
    assert path.read_text() == "new"


def test_a_crash_before_the_rename_leaves_the_old_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    write_atomic(path, "old")

    def crash(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", crash)
    with pytest.raises(OSError, match="No space"):
        write_atomic(path, "new")
    monkeypatch.undo()
    assert path.read_text() == "old"
    write_atomic(path, "newer")
    assert path.read_text() == "newer"
    assert os.listdir(tmp_path) == ["a"]


def test_a_link_in_place_of_the_file_is_replaced_and_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path = tmp_path / "a"
    path.symlink_to(victim)
    assert file_digest(path) is None
    write_atomic(path, "new")
    assert (victim.read_text(), path.is_symlink()) == ("precious", False)


def test_a_planted_temporary_link_is_refused(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / ".a.new").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic"):
        write_atomic(tmp_path / "a", "new")
    assert victim.read_text() == "precious"


def test_absent_files_read_as_absent_and_can_be_removed_twice(tmp_path: Path) -> None:
    path = tmp_path / "a"
    assert (read_text(path), read_json(path, 7), file_digest(path)) == (None, 7, None)
    write_json(path, {"b": 1})
    assert read_json(path, None) == {"b": 1}
    assert mode(path) == 0o600
    remove(path)
    remove(path)
    remove(tmp_path / "no" / "folder")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("text", ["a\nb\n", "a\r\nb\r\n", "tail\r", "\u2028 \x85 é", ""])
def test_a_text_is_read_as_it_was_written_byte_for_byte(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a"
    write_atomic(path, text)
    assert path.read_bytes() == text.encode()
    assert read_text(path) == text


def test_a_full_disk_leaves_the_old_text_and_no_part_of_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "a"
    write_atomic(path, "old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomic(path, "new")
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("a", "old")]
