"""The agent's own resource: the program that does each step on the host."""

from __future__ import annotations

import pulumi

import build
from components.step import Channel, Step, owner
from components.sudo import ASK_SUDO
from cutover.facts import Repair

# Runs before there is an agent: takes the archive from stdin, checks it, and hands over to it.
_BOOTSTRAP = """\
import base64, bz2, hashlib, os, sys
want, text = sys.stdin.readline().strip(), sys.stdin.read()
if sys.version_info < (3, 9):
    sys.exit("the host has Python %d.%d, cutover needs 3.9 or newer" % sys.version_info[:2])
try:
    data = bz2.decompress(base64.b64decode(text))
except (OSError, ValueError):
    data = b""
if hashlib.sha256(data).hexdigest() != want:
    sys.exit("the agent arrived damaged: run pulumi up again")
path = "/usr/local/lib/cutover/" + want[:16] + ".pyz"
os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
with open(path + ".new", "wb") as file:
    file.write(data)
    file.flush()
    os.fsync(file.fileno())
os.rename(path + ".new", path)
os.execv(sys.executable, [sys.executable, "-I", path, "settle", *sys.argv[2:]])
"""


def agent_step(
    channel: Channel, kind: str, repair: Repair, parent: pulumi.Resource, keep: bool
) -> Step:
    """Installs the agent under its digest; deleted last, it takes everything of ours along, but
    for the unit that serves where `keep` says so.

    The digest that counts is the one on stdin; on the command line it shows that the agent changes.
    """
    archive = build.build()
    return Step(
        "agent",
        channel,
        create=ASK_SUDO * (channel.sudo is not False)
        + channel.line("python3", "-I", "-c", _BOOTSTRAP, archive.digest, *repair.words),
        delete=channel.agent("leave", *["--keep"] * keep, "--owner", owner(kind, channel, "agent")),
        stdin=f"{archive.digest}\n{archive.packed}",
        after=[],
        parent=parent,
        hidden=True,
        repair=repair,
        keeps_serving=True,
    )
