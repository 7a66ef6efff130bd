"""Asks all hosts at once, one SSH session each; a program of its own, run by `facts.py`.

The SSH library takes as long to import as everything else that a preview needs. Beside the program,
in a process of its own, it takes no time of it. So nothing of pydantic or Pulumi is imported here.
"""

from __future__ import annotations

import asyncio
import gc
import os
import pickle
import shlex
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from components.question import Login, Question, Reply
from components.sudo import ASK_SUDO

gc.disable()  # in a process of one second it only makes imports longer

import asyncssh  # noqa: E402

CONNECT_SECONDS = 8
ANSWER_SECONDS = 20
"""A host that takes longer counts as unreachable; its agent waits 5 s for nvidia-smi."""
SEND = "send"

# The host runs the installed agent only if it is this one; else it gets it, and keeps nothing.
_ASK = """\
agent=/usr/local/lib/cutover/{name}.pyz
if test -r $agent; then exec python3 -I $agent facts; fi
echo {send}
exec python3 -I -c {borrow}
"""
_BORROW = """\
import base64, bz2, io, os, sys
request, data = sys.stdin.readline(), bz2.decompress(base64.b64decode(sys.stdin.readline()))
if sys.version_info < (3, 9):
    sys.exit("the host has Python %d.%d, cutover needs 3.9 or newer" % sys.version_info[:2])
file = os.memfd_create("cutover")
os.write(file, data)
sys.path.insert(0, "/proc/self/fd/%d" % file)
sys.argv, sys.stdin = ["cutover", "facts"], io.StringIO(request)
from cutover_agent.__main__ import main
sys.exit(main())
"""


class _AtJumpHost(Exception):
    """The way ends at the jump host; the cause says why."""


async def ask_all(questions: Mapping[str, Question], agent: str) -> dict[str, Reply]:
    """Every host's reply, by its name, within ANSWER_SECONDS; `agent` names the archive."""
    found = await asyncio.gather(*(_ask(each, agent) for each in questions.values()))
    return dict(zip(questions, found, strict=True))


async def _ask(question: Question, agent: str) -> Reply:
    try:
        return await asyncio.wait_for(_answer(question, agent), ANSWER_SECONDS)
    except _AtJumpHost as end:
        assert question.jump and end.__cause__
        return _why_not(end.__cause__, question.jump, "the jump host: ", "proxy.host_key")
    except Exception as error:
        return _why_not(error, question.login, "", "host_key")


def _why_not(error: BaseException, hop: Login, where: str, pin: str) -> Reply:
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        reason = f"{where}it shows another host key than the pinned one"
        return Reply(reason=reason, stranger=pin, address=hop.address)
    if isinstance(error, asyncssh.PermissionDenied):
        return Reply(reason=f"{where}{hop.user} is not let in with this key")
    if isinstance(error, TimeoutError):
        return Reply(reason=f"{where}no answer within {ANSWER_SECONDS} s")
    if isinstance(error, ConnectionRefusedError):
        return Reply(reason=f"{where}{hop.address}:{hop.port} refuses connections")
    if isinstance(error, socket.gaierror):
        return Reply(reason=f"{where}nobody knows the name {hop.address}")
    if isinstance(error, asyncssh.KeyImportError):
        told = f"{where}its key cannot be opened, see key and key_passphrase: {error}"
        return Reply(reason=told)
    if isinstance(error, (OSError, asyncssh.Error, ValueError)):
        return Reply(reason=where + (str(error).partition("\n")[0] or type(error).__name__))
    raise error


async def _answer(question: Question, agent: str) -> Reply:
    async with AsyncExitStack() as opened:
        tunnel = None
        if question.jump:
            try:
                tunnel = await _connect(question.jump, None)
            except Exception as error:
                raise _AtJumpHost from error
            opened.push_async_exit(tunnel)
        connection = await _connect(question.login, tunnel)
        opened.push_async_exit(connection)
        reply = await _talk(connection, question, agent)
        return replace(reply, host_key=_key(connection), jump_key=_key(tunnel))


async def _connect(
    login: Login, tunnel: asyncssh.SSHClientConnection | None
) -> asyncssh.SSHClientConnection:
    options: dict[str, Any] = {"known_hosts": None}
    if login.host_key:
        pinned = asyncssh.import_public_key(login.host_key)
        options = {
            "known_hosts": ([pinned], [], []),
            "server_host_key_algs": _algorithms(pinned.get_algorithm()),
        }
    return await asyncssh.connect(
        login.address,
        login.port,
        tunnel=tunnel or (),
        username=login.user,
        client_keys=await _keys(login),
        agent_path=None,
        config=None,
        connect_timeout=CONNECT_SECONDS,
        **options,
    )


async def _keys(login: Login) -> list[Any]:
    """The key that the config gives, else those of the SSH agent; nothing from ~/.ssh."""
    if login.key:
        return [asyncssh.import_private_key(login.key, login.passphrase)]
    path = os.environ.get("SSH_AUTH_SOCK")
    if not path:
        raise ValueError("there is neither a key nor an SSH agent")
    try:
        return list(await (await asyncssh.connect_agent(path)).get_keys())
    except OSError as error:
        raise ValueError(f"the SSH agent does not answer at {path}: {error.strerror}") from None


def _algorithms(name: str) -> list[str]:
    return ["rsa-sha2-512", "rsa-sha2-256", name] if name == "ssh-rsa" else [name]


async def _talk(connection: asyncssh.SSHClientConnection, question: Question, agent: str) -> Reply:
    script = _ASK.format(name=agent, send=SEND, borrow=shlex.quote(_BORROW))
    words = ["sudo", "-n", "sh", "-c", script] if question.sudo else ["sh", "-c", script]
    command = ASK_SUDO * question.sudo + shlex.join(words)
    async with connection.create_process(command) as process:
        process.stdin.write(question.line + "\n")
        line = await process.stdout.readline()
        if line.strip() == SEND:
            process.stdin.write(_packed() + "\n")
            line = await process.stdout.readline()
        if not line.strip():
            said = (await process.stderr.read(2000)).strip().splitlines()
            return Reply(reason=said[-1] if said else "its agent says nothing")
    return Reply(line)


def _packed() -> str:
    """Built only where a host does not have this agent."""
    sys.path.append(str(Path(__file__).parents[1] / "agent"))
    import build

    return build.build().packed


def _key(connection: asyncssh.SSHClientConnection | None) -> str:
    """The key that a machine has shown, as in its .pub file."""
    shown = connection.get_server_host_key() if connection else None
    return shown.export_public_key().decode().strip() if shown else ""


def main() -> None:
    """Reads questions and writes replies, both pickled; ends without where nothing comes."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a traceback would bury what was interrupted
    with suppress(EOFError):
        questions, agent = pickle.load(sys.stdin.buffer)
        sys.stdout.buffer.write(pickle.dumps(asyncio.run(ask_all(questions, agent))))
    gc.freeze()  # else Python looks at every object once more before it ends


if __name__ == "__main__":
    main()
