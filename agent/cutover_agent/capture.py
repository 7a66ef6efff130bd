"""How a server was started by hand, and a unit that starts it so again."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from typing import Optional

from . import environment
from .processes import Process

DEPLOYMENT = "by-hand"

_NAME = re.compile(r"[A-Za-z_]\w*")
# What a service manager or a login gave this one process, and nobody else may have.
_OWN = re.compile(r"^(INVOCATION_ID|JOURNAL_STREAM|NOTIFY_SOCKET|LISTEN_\w+|MAINPID|SSH_\w+|_)$")


@dataclass(frozen=True)
class Started:
    """How a process was started."""

    argv: tuple[str, ...]
    environ: dict[str, str]
    folder: str
    user: str


def started(process: Process) -> Optional[Started]:
    """How a process was started; None where it has written its title over that."""
    try:
        with open(f"/proc/{process.pid}/environ", "rb") as file:
            raw = file.read()
        folder = os.readlink(f"/proc/{process.pid}/cwd")
    except OSError:
        return None
    environ = parse_environ(raw)
    if not environ or len(process.argv) < 2:
        return None
    program = _program(process.argv[0], environ, folder)
    return Started((program, *process.argv[1:]), environ, folder, process.user)


def _program(word: str, environ: dict[str, str], folder: str) -> str:
    """A program's path as its own shell found it: systemd would look elsewhere."""
    if "/" in word:
        return os.path.join(folder, word)
    return shutil.which(word, path=environ.get("PATH")) or word


def parse_environ(raw: bytes) -> dict[str, str]:
    """Variables of a process that can be given to another one."""
    pairs = (item.partition("=") for item in raw.decode(errors="surrogateescape").split("\0"))
    return {n: v for n, eq, v in pairs if eq and _NAME.fullmatch(n) and not _OWN.match(n)}


def unit_text(how: Started) -> str:
    """A unit that starts the same program in the same place as the same user."""
    command = " ".join(quoted(word) for word in how.argv)
    return f"""\
# Written by cutover: a server that was started by hand, as it ran before a cutover ended it.
[Unit]
Description=A model server that was started by hand
After=network-online.target

[Service]
Type=exec
User={how.user}
WorkingDirectory={how.folder.replace("%", "%%")}
EnvironmentFile={environment.path(DEPLOYMENT)}
ExecStart={command}
KillMode=mixed
Restart=on-failure
RestartSec=10
TimeoutStopSec=120
LimitMEMLOCK=infinity
LimitNOFILE=1048576

[Install]
WantedBy=multi-user.target
"""


def quoted(word: str) -> str:
    """One argument for ExecStart=, whatever it holds."""
    text = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return '"' + text.replace("\n", "\\n").replace("\t", "\\t") + '"'


def key_of(how: Optional[Started]) -> str:
    """The API key that a server was started with; empty where it has none, or nobody knows."""
    if how is None:
        return ""
    for position, word in enumerate(how.argv):
        if word == "--api-key":
            return "".join(how.argv[position + 1 : position + 2])
        if word.startswith("--api-key="):
            return word.partition("=")[2]
    return how.environ.get("VLLM_API_KEY", "")
