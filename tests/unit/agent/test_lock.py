"""One holder at a time, and the kernel drops the lock of a holder that dies."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cutover_agent import lock

ROOT = Path(lock.__file__).parents[1]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(lock, "FOLDER", tmp_path / "run")
    return tmp_path / "run"


def test_a_held_lock_is_seen_and_a_released_one_is_free() -> None:
    with lock.held("a"):
        assert lock.is_held("a")
        assert not lock.is_held("b")
    assert not lock.is_held("a")


def test_an_error_in_the_block_releases_it() -> None:
    with pytest.raises(RuntimeError), lock.held("a"):
        raise RuntimeError
    assert not lock.is_held("a")


def ask(folder: Path, code: str) -> subprocess.Popen[bytes]:
    """Runs code that knows `lock` in another process."""
    start = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from pathlib import Path; from cutover_agent import lock\n"
        f"lock.FOLDER = Path({str(folder)!r})\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", start + code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def test_the_lock_of_a_killed_holder_is_free(folder: Path) -> None:
    holder = ask(folder, "with lock.held('a'): print('held', flush=True); sys.stdin.read()")
    assert holder.stdout
    assert holder.stdout.readline().strip() == b"held"
    assert lock.is_held("a")
    holder.kill()
    holder.communicate()
    assert not lock.is_held("a")


def test_those_who_only_ask_do_not_take_each_other_for_a_holder(folder: Path) -> None:
    """A monitor that runs `cutover status` must not look like a transaction."""
    code = "sys.stdin.read(); print(sum(lock.is_held('a') for _ in range(5000)))"
    askers = [ask(folder, code) for _ in range(2)]
    for asker in askers:
        assert asker.stdin
        asker.stdin.close()
    for asker in askers:
        assert asker.stdout
        assert asker.stdout.read().strip() == b"0"
        asker.stdout.close()
        asker.wait()
