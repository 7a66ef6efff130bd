"""What sets one host's disk apart from the layers below it."""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path

from sandbox import keys


def prepare(folder: Path, name: str, gpus: int, address: str, login_key: str) -> None:
    """Make the host's own layer: its name, its SSH host key, who may log in, its GPU count."""
    upper = folder / "disk/upper"
    for part in ("upper", "work", "root"):
        (folder / "disk" / part).mkdir(parents=True)
    keys.make_key(folder / "host_key", name)
    (folder / "known_hosts").write_text(f"{address} {keys.public_line(folder / 'host_key')}\n")
    _write(upper / "etc/hostname", f"{name}\n")
    _write(upper / "etc/machine-id", f"{uuid.uuid4().hex}\n")
    _write(upper / "etc/hosts", f"127.0.0.1 localhost {name}\n")
    _write(upper / "etc/practice/gpu.json", json.dumps({"count": gpus}) + "\n")
    _write(upper / "etc/practice/engine.json", "{}\n")
    (upper / "etc/ssh").mkdir()
    shutil.copy(folder / "host_key", upper / "etc/ssh/ssh_host_ed25519_key")
    (upper / "etc/ssh/authorized_keys").write_text(f"{login_key}\n")
    (folder / "console.log").touch()


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
