"""Asks all hosts at once what is true there, one SSH session each, while the program goes on."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shlex
import socket
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import build
from components.sudo import ASK_SUDO
from cutover.facts import Answer, NoFacts, parse
from cutover.host import Host, Keys, Proxy

if TYPE_CHECKING:
    import asyncssh

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
import base64, io, os, sys
request, data = sys.stdin.readline(), base64.b64decode(sys.stdin.readline())
if sys.version_info < (3, 9):
    sys.exit("the host has Python %d.%d, cutover needs 3.9 or newer" % sys.version_info[:2])
file = os.memfd_create("cutover")
os.write(file, data)
sys.path.insert(0, "/proc/self/fd/%d" % file)
sys.argv, sys.stdin = ["cutover", "facts"], io.StringIO(request)
from cutover_agent.__main__ import main
sys.exit(main())
"""


@dataclass(frozen=True)
class Question:
    """One host, how to log in there, and what is about to be ordered from it."""

    host: Host
    keys: Keys
    order: str
    """JSON."""
    unit_text: str
    env_text: str
    """The environment file, secrets included: it travels on standard input only."""
    others: tuple[str, ...]
    """Units of the other deployments."""

    @property
    def line(self) -> str:
        """What the agent reads."""
        texts = {"unit_text": self.unit_text, "env_text": self.env_text}
        return json.dumps({"order": json.loads(self.order), **texts, "others": self.others})


class Facts:
    """The hosts' answers, asked for in the background."""

    def __init__(self, questions: Mapping[str, Question]) -> None:
        pool = ThreadPoolExecutor(1, "facts")
        self._answers: Future[dict[str, Answer]] = pool.submit(
            lambda: asyncio.run(_ask_all(questions))
        )
        pool.shutdown(wait=False)

    def answers(self) -> dict[str, Answer]:
        """By host; waits for them, at most ANSWER_SECONDS."""
        return self._answers.result()


async def _ask_all(questions: Mapping[str, Question]) -> dict[str, Answer]:
    archive = build.build()
    found = await asyncio.gather(*(_ask(each, archive) for each in questions.values()))
    return dict(zip(questions, found, strict=True))


class _AtJumpHost(Exception):
    """The way ends at the jump host; the cause says why."""


async def _ask(question: Question, archive: build.Archive) -> Answer:
    host = question.host
    try:
        return await asyncio.wait_for(_answer(question, archive), ANSWER_SECONDS)
    except _AtJumpHost as end:
        assert host.proxy and end.__cause__
        return _why_not(end.__cause__, host.proxy, "the jump host: ", "proxy.host_key")
    except Exception as error:
        return _why_not(error, host, "", "host_key")


def _why_not(error: BaseException, hop: Host | Proxy, where: str, pin: str) -> NoFacts:
    import asyncssh

    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        reason = f"{where}it shows another host key than the pinned one"
        return NoFacts(reason, pin, hop.address)
    if isinstance(error, asyncssh.PermissionDenied):
        return NoFacts(f"{where}{hop.user} is not let in with this key")
    if isinstance(error, TimeoutError):
        return NoFacts(f"{where}no answer within {ANSWER_SECONDS} s")
    if isinstance(error, ConnectionRefusedError):
        return NoFacts(f"{where}{hop.address}:{hop.port} refuses connections")
    if isinstance(error, socket.gaierror):
        return NoFacts(f"{where}nobody knows the name {hop.address}")
    if isinstance(error, asyncssh.KeyImportError):
        return NoFacts(f"{where}its key cannot be opened, see key and key_passphrase: {error}")
    if isinstance(error, (OSError, asyncssh.Error, ValueError)):
        return NoFacts(where + (str(error).partition("\n")[0] or type(error).__name__))
    raise error


async def _answer(question: Question, archive: build.Archive) -> Answer:
    host = question.host
    async with AsyncExitStack() as opened:
        tunnel = None
        if host.proxy:
            phrase = None if host.proxy.key_file else host.key_passphrase
            try:
                tunnel = await _connect(host.proxy, question.keys.proxy, phrase, None)
            except Exception as error:
                raise _AtJumpHost from error
            opened.push_async_exit(tunnel)
        connection = await _connect(host, question.keys.host, host.key_passphrase, tunnel)
        opened.push_async_exit(connection)
        line = await _talk(connection, question, archive)
        return line if isinstance(line, NoFacts) else parse(line, _key(connection), _key(tunnel))


async def _connect(
    host: Host | Proxy,
    key: str | None,
    passphrase: str | None,
    tunnel: asyncssh.SSHClientConnection | None,
) -> asyncssh.SSHClientConnection:
    import asyncssh

    options: dict[str, Any] = {"known_hosts": None}
    if host.host_key:
        pinned = asyncssh.import_public_key(host.host_key)
        options = {
            "known_hosts": ([pinned], [], []),
            "server_host_key_algs": _algorithms(pinned.get_algorithm()),
        }
    return await asyncssh.connect(
        host.address,
        host.port,
        tunnel=tunnel or (),
        username=host.user,
        client_keys=await _keys(key, passphrase),
        agent_path=None,
        config=None,
        connect_timeout=CONNECT_SECONDS,
        **options,
    )


async def _keys(key: str | None, passphrase: str | None) -> list[Any]:
    """The key that the config gives, else those of the SSH agent; nothing from ~/.ssh."""
    import asyncssh

    if key:
        return [asyncssh.import_private_key(key, passphrase)]
    path = os.environ.get("SSH_AUTH_SOCK")
    if not path:
        raise ValueError("there is neither a key nor an SSH agent")
    try:
        return list(await (await asyncssh.connect_agent(path)).get_keys())
    except OSError as error:
        raise ValueError(f"the SSH agent does not answer at {path}: {error.strerror}") from None


def _algorithms(name: str) -> list[str]:
    return ["rsa-sha2-512", "rsa-sha2-256", name] if name == "ssh-rsa" else [name]


async def _talk(
    connection: asyncssh.SSHClientConnection, question: Question, archive: build.Archive
) -> str | NoFacts:
    script = _ASK.format(name=archive.digest[:16], send=SEND, borrow=shlex.quote(_BORROW))
    words = ["sudo", "-n", "sh", "-c", script] if question.host.uses_sudo else ["sh", "-c", script]
    command = ASK_SUDO * question.host.uses_sudo + shlex.join(words)
    async with connection.create_process(command) as process:
        process.stdin.write(question.line + "\n")
        line = await process.stdout.readline()
        if line.strip() == SEND:
            process.stdin.write(base64.b64encode(archive.data).decode() + "\n")
            line = await process.stdout.readline()
        if not line.strip():
            said = (await process.stderr.read(2000)).strip().splitlines()
            return NoFacts(said[-1] if said else "its agent says nothing")
    return str(line)


def _key(connection: asyncssh.SSHClientConnection | None) -> str:
    """The key that a machine has shown, as in its .pub file."""
    shown = connection.get_server_host_key() if connection else None
    return shown.export_public_key().decode().strip() if shown else ""
