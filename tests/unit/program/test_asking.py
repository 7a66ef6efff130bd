"""A host that cannot be asked is told with what is in the way; no host is needed for that."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from components.facts import Asker, question
from cutover.facts import NoFacts
from cutover.host import Host, Keys

NOWHERE = "/nowhere/agent"


def why_not(key: str | None = None, **host: Any) -> str:
    asked = Host(**{"address": "127.0.0.1", "gpus": 8, **host})
    answer = Asker().ask({"box": question(asked, Keys(key, key), "{}", {}, [])})["box"]
    assert isinstance(answer, NoFacts)
    return answer.sentence.removeprefix("the host cannot be asked: ")


@pytest.fixture
def free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        port: int = door.getsockname()[1]
        return port


@pytest.fixture
def locked(tmp_path: Path) -> str:
    """A private key with a passphrase."""
    path = tmp_path / "locked"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "x", "-f", path], check=True)
    return path.read_text()


def test_what_is_in_the_way_is_named(
    monkeypatch: pytest.MonkeyPatch, free_port: int, locked: str
) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", NOWHERE)
    assert why_not().startswith(f"the SSH agent does not answer at {NOWHERE}: ")
    assert "see key and key_passphrase" in why_not(locked, port=free_port)
    opened = {"key_file": "locked", "key_passphrase": "x"}
    refused = f"127.0.0.1:{free_port} refuses connections"
    assert why_not(locked, **opened, port=free_port) == refused
    jump = {"address": "127.0.0.1", "port": free_port}
    assert why_not(locked, **opened, proxy=jump) == f"the jump host: {refused}"
    monkeypatch.delenv("SSH_AUTH_SOCK")
    assert why_not() == "there is neither a key nor an SSH agent"


def test_the_ssh_library_is_imported_only_by_a_run_that_asks() -> None:
    code = f"import sys; sys.path[:0] = {[p for p in sys.path if p]!r}; import components.fleet;"
    told = subprocess.run(
        [sys.executable, "-c", f"{code} print('asyncssh' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout == "False\n"
