"""The agent's archive: the same bytes in every clone, and it runs."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import build


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("archive") / "cutover.pyz"
    path.write_bytes(build.build().data)
    return path


def copy(to: Path) -> Path:
    source = to / "cutover_agent"
    shutil.copytree(build.SOURCE, source, ignore=shutil.ignore_patterns("__pycache__"))
    return source


def test_two_copies_of_the_tree_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = copy(tmp_path / "a"), copy(tmp_path / "b")
    for path in second.rglob("*.py"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
        os.chmod(path, 0o600)
        os.utime(path, (1, 1))
    (second / "__pycache__").mkdir()
    (second / "__pycache__" / "x.pyc").write_bytes(b"junk")
    assert build.build(first) == build.build(second) == build.build()


def test_a_changed_line_changes_the_digest(tmp_path: Path) -> None:
    source = copy(tmp_path)
    (source / "clock.py").write_text("# other\n")
    got = build.build(source)
    assert got.digest != build.build().digest
    assert got.digest == hashlib.sha256(got.data).hexdigest()


@pytest.mark.parametrize("command", [[], ["status"], ["put"], ["converge"]])
def test_the_archive_runs_isolated_and_explains_itself(archive: Path, command: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-I", str(archive), *command, "--help"],
        capture_output=True,
        text=True,
        cwd="/",
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: cutover")


def test_an_unknown_command_is_told_without_a_traceback(archive: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-I", str(archive), "nonsense"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_every_module_is_imported_at_the_start(archive: Path) -> None:
    """The archive may be replaced while it runs."""
    code = (
        f"import sys; sys.path.insert(0, {str(archive)!r}); import cutover_agent.__main__;"
        "print(*sorted(n for n in sys.modules if n.startswith('cutover_agent.')))"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True)
    loaded = {name.rpartition(".")[2] for name in done.stdout.split()}
    assert loaded == {path.stem for path in build.SOURCE.glob("*.py")} - {"__init__"}
