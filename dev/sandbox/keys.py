"""SSH keys of practice hosts: one for all who log in, one per host."""

from __future__ import annotations

import fcntl
import subprocess
from pathlib import Path


def client_key(folder: Path) -> Path:
    """The private key with which every host of this state folder lets people in."""
    key = folder / "id_ed25519"
    with (folder / "id.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not key.exists():
            make_key(key, "practice")
    return key


def make_key(path: Path, comment: str) -> None:
    """Make an ed25519 key pair without a passphrase."""
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def public_line(private: Path) -> str:
    """`ssh-ed25519 AAAA...`, without the comment."""
    return " ".join(private.with_name(f"{private.name}.pub").read_text().split()[:2])
