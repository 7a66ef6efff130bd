"""One command over one new SSH connection, reported as the real plugin reports it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from typing import Any, NamedTuple

import asyncssh
from asyncssh.packet import String

from .dial import Log, dial
from .errors import CommandError

_NOT_ACCEPTED = (
    "Unable to set '{name}'. This only works if your SSH server is configured to accept\n"
    "\tthese variables via AcceptEnv. Alternatively, if a Bash-like shell runs the command "
    "on the remote host, you could\n"
    "\tprefix the command itself with the variables in the form 'VAR=value command'"
)

_LOGGED: dict[str, tuple[int, ...]] = {"stdout": (0,), "stderr": (1,), "stdoutAndStderr": (0, 1)}
# The real plugin hangs for ever at a logged line as long as this, in bytes.
_TOO_LONG = 64 * 1024

# The real plugin closes no connection before it ends.
_open_connections: list[asyncssh.SSHClientConnection] = []


class Output(NamedTuple):
    """What a command wrote, each without its last newline."""

    stdout: str
    stderr: str


async def run(command: str, state: dict[str, Any], log: Log, cancelled: asyncio.Event) -> Output:
    """Runs a command as the state says: inputs and earlier outputs, without secret marks.

    `log` takes a level ("status", "warning", "error") and a text. `cancelled` ends retries of the
    connection, not the command. Raises CommandError.
    """
    connection = await dial(state["connection"], log, cancelled)
    _open_connections.append(connection)
    session = _Session(command, state, log)
    try:
        channel, _ = await connection.create_session(lambda: session, command, encoding=None)
    except asyncssh.Error as error:
        raise CommandError(str(error)) from error
    with contextlib.suppress(OSError):  # The command may already have ended.
        channel.write(state.get("stdin", "").encode())
        channel.write_eof()
    await channel.wait_closed()
    trouble = session.trouble()
    if trouble:
        raise CommandError(f"{trouble}: running {quoted(command)}:\n{_text(session.both)}")
    try:
        return Output(*(written.decode().removesuffix("\n") for written in session.written))
    except UnicodeDecodeError:
        raise CommandError(
            "grpc: error while marshaling: string field contains invalid UTF-8"
        ) from None


class _Session(asyncssh.SSHClientSession[bytes]):
    """Gathers what one command writes."""

    def __init__(self, command: str, state: dict[str, Any], log: Log) -> None:
        self._command, self._state, self._log = command, state, log
        self._logs = _LOGGED.get(state.get("logging", "stdoutAndStderr"), ())
        self._line = b""
        self._end: str | None = "wait: remote command exited without exit status or exit signal"
        self._stdin_waits = self._endless = False
        self.written = (bytearray(), bytearray())
        self.both = bytearray()

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        chan.set_write_buffer_limits(0)
        request = chan._make_request

        # asyncssh does not ask whether the server took a variable, and takes "" for "no command".
        async def request_as_the_real_plugin(*_: bytes) -> bool | None:
            for name, value, optional in environment(self._state):
                if await request(b"env", String(name), String(value)):
                    continue
                self._log("warning" if optional else "error", _NOT_ACCEPTED.format(name=name))
                if not optional:
                    raise CommandError(
                        f"could not set environment variable {quoted(name)}: ssh: setenv failed"
                    )
            return await request(b"exec", String(self._command))

        chan._make_request = request_as_the_real_plugin  # type: ignore[assignment,method-assign]

    def pause_writing(self) -> None:
        self._stdin_waits = True

    def resume_writing(self) -> None:
        self._stdin_waits = False

    def data_received(self, data: bytes, datatype: int | None) -> None:
        stream = 0 if datatype is None else 1
        self.written[stream].extend(data)
        self.both.extend(data)
        if stream in self._logs:
            *lines, self._line = (self._line + data).split(b"\n")
            for line in lines:
                self._log("status", _text(line.removesuffix(b"\r")))
            self._endless = self._endless or max(map(len, [*lines, self._line])) >= _TOO_LONG

    def exit_status_received(self, status: int) -> None:
        self._end = f"Process exited with status {status}" if status else None

    def exit_signal_received(self, name: str, core: bool, msg: str, lang: str) -> None:
        number = getattr(signal, f"SIG{name}", 0)
        self._end = f"Process exited with status {128 + number} from signal {name}"
        self._end += f". Reason was: {msg}" if msg else ""

    def trouble(self) -> str | None:
        """What went wrong with the command, once its channel is closed."""
        if self._line:
            self._log("status", _text(self._line))
        if self._endless:
            return "a line of 64 KiB or more, at which the real plugin hangs for ever"
        return self._end or ("EOF" if self._stdin_waits else None)


def environment(state: dict[str, Any]) -> list[tuple[str, str, bool]]:
    """Name, value, and whether the command may run without it."""
    wanted = [(name, value, False) for name, value in state.get("environment", {}).items()]
    if state.get("addPreviousOutputInEnv", True):
        for stream in ("stdout", "stderr"):
            if state.get(stream):
                wanted.append((f"PULUMI_COMMAND_{stream.upper()}", state[stream], True))
    return wanted


def quoted(text: str) -> str:
    """The text on one line as Go's %q prints it."""
    named = {"\a": "a", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t", "\v": "v"}
    named |= {'"': '"', "\\": "\\"}

    def one(character: str) -> str:
        if character in named:
            return "\\" + named[character]
        if character.isprintable():
            return character
        code = ord(character)
        width, mark = (2, "x") if code < 0x80 else (4, "u") if code < 0x10000 else (8, "U")
        return f"\\{mark}{code:0{width}x}"

    return f'"{"".join(map(one, text))}"'


def _text(data: bytes | bytearray) -> str:
    return bytes(data).decode(errors="replace")
