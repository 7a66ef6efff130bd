"""A server that somebody started by hand, kept as a unit: the way back to it."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from typing import Optional

from . import environment, ports, probe
from .install import CAPTURED
from .order import Order, Probe
from .processes import Process
from .release_plan import Tree
from .store import Serving, Store

DEPLOYMENT = "by-hand"
KEY = "CUTOVER_API_KEY"
"""Where a key that was given on the command line is kept for the probe."""

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


def ask(tree: Tree) -> Optional[Probe]:
    """How to ask a server, from the port that it really listens on and the model it lists."""
    pids = {process.pid for process in tree.members}
    key = _key(started(tree.root))
    for url in ports.urls_of(pids):
        for model in probe.models(url, key):
            return Probe(url, model)
    return None


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


def keep(store: Store, order: Order, tree: Tree, asked: Probe) -> Optional[Serving]:
    """Keeps a server as a unit in the store; None where it cannot be started again."""
    how = started(tree.root)
    if how is None:
        return None
    key = _key(how)
    environ = {**how.environ, **({KEY: key} if key else {})}
    lines = [environment.line(name, value) for name, value in environ.items()]
    unit = store.keep(unit_text(how))
    env = store.keep("# Written by cutover: the environment of a server started by hand.\n"
                     + "".join(f"{line}\n" for line in lines))  # fmt: skip
    asked = Probe(asked.url, asked.model, api_key_env=KEY if key else "")
    gpus = tuple(range(order.host_gpus))
    taken = Order(
        order.host, order.host_gpus, DEPLOYMENT, CAPTURED, unit, gpus, "/", asked,
        policy=order.policy, deadlines=order.deadlines,
    )  # fmt: skip
    return Serving(taken, env, "", 0.0)


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


def _key(how: Optional[Started]) -> str:
    if how is None:
        return ""
    for position, word in enumerate(how.argv):
        if word == "--api-key":
            return "".join(how.argv[position + 1 : position + 2])
        if word.startswith("--api-key="):
            return word.partition("=")[2]
    return how.environ.get("VLLM_API_KEY", "")
