"""Making and booting a practice host."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import sys
from pathlib import Path

from sandbox import disk, keys
from sandbox.errors import SandboxError
from sandbox.host import HERE, Host
from sandbox.places import state_root
from sandbox.root import layers

PORTS = (22, 8000)
TOOLS = ("mmdebstrap", "systemd-nspawn", "nsenter", "unshare", "setpriv", "ssh")


def start(name: str, gpus: int = 8, state: Path | None = None) -> Host:
    """Make and boot a host; `state` is the folder in which hosts live side by side.

    Raises SandboxError when the machine cannot run one, the name is taken, or it does not boot;
    then nothing is left of it.
    """
    _check_machine()
    root = state or state_root()
    root.mkdir(parents=True, exist_ok=True)
    keys.client_key(root)
    lower = layers()
    try:
        (root / name).mkdir()
    except FileExistsError:
        raise SandboxError(f"Practice host '{name}' exists already: stop it first.") from None
    try:
        listeners = _listeners()
    except SandboxError:
        (root / name).rmdir()
        raise
    try:
        return _assemble(root / name, gpus, lower, listeners)
    finally:
        for listener in listeners:
            listener.close()


def _assemble(folder: Path, gpus: int, lower: list[Path], listeners: list[socket.socket]) -> Host:
    address = listeners[0].getsockname()[0]
    # The address may be somebody else's later, the group must not be.
    group = f"cutover-sandbox-{address.rpartition('.')[2]}-{secrets.token_hex(3)}"
    host = Host(folder, folder.name, address, group)
    facts = {"name": host.name, "address": address, "group": group, "layers": [*map(str, lower)]}
    try:
        (folder / "host.json").write_text(json.dumps(facts))
        disk.prepare(folder, host.name, gpus, address, keys.public_line(host.key_path))
        doors = [f"{s.fileno()}:{p}" for s, p in zip(listeners, PORTS, strict=True)]
        forwarder = [sys.executable, "-B", str(HERE / "forwarder.py"), str(folder / "leader")]
        host.launch("forwarder", [*forwarder, *doors], [s.fileno() for s in listeners])
        host.boot()
    except BaseException:
        host.stop()
        raise
    return host


def _check_machine() -> None:
    """Refuse early, and in one sentence, what would fail late."""
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing or os.geteuid():
        raise SandboxError(
            f"Practice hosts need root and {', '.join(TOOLS)}; "
            f"{'missing: ' + ', '.join(missing) if missing else 'this is not root'}."
        )


def _listeners() -> list[socket.socket]:
    """Listening sockets on the first loopback address that is free: binding is the reservation."""
    for last in range(1, 255):
        bound = [socket.socket() for _ in PORTS]
        try:
            for one, port in zip(bound, PORTS, strict=True):
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                one.bind((f"127.77.0.{last}", port))
                one.listen(128)
            return bound
        except OSError:
            for one in bound:
                one.close()
    raise SandboxError("All addresses 127.77.0.1 to 127.77.0.254 are taken: stop some hosts.")
