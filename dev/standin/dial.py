"""Opening an SSH connection, with the retries and the error texts of the real plugin."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import asyncssh

from .errors import CommandError, reason
from .login import options_of

Log = Callable[[str, str], None]


async def dial(
    connection: dict[str, Any], log: Log, cancelled: asyncio.Event
) -> asyncssh.SSHClientConnection:
    """Connects as a resource's `connection` says. Raises CommandError."""
    options = await options_of(connection)
    proxy = connection.get("proxy")
    if proxy is None:
        return await _retried(
            "Dial", connection, log, cancelled, lambda: _connect(connection, options, None)
        )
    try:
        proxy_options = await options_of(proxy)
        bastion = await _retried(
            "Dial proxy", proxy, log, cancelled, lambda: _connect(proxy, proxy_options, None)
        )
        return await _retried(
            "Dial", connection, log, cancelled, lambda: _connect(connection, options, bastion)
        )
    except CommandError as error:
        raise CommandError(f"proxy: {error}") from error


async def _retried(
    what: str,
    connection: dict[str, Any],
    log: Log,
    cancelled: asyncio.Event,
    attempt: Callable[[], Awaitable[asyncssh.SSHClientConnection]],
) -> asyncssh.SSHClientConnection:
    limit = int(connection["dialErrorLimit"])
    failed, pause = 0, 0.1
    while True:
        try:
            return await attempt()
        except CommandError as error:
            if failed >= limit >= 0:
                raise CommandError(f"after {failed} failed attempts: {error}") from error
        failed += 1
        log("status", f"{what} {failed}/{'inf' if limit < 0 else limit} failed: retrying")
        try:
            await asyncio.wait_for(cancelled.wait(), pause)
        except TimeoutError:
            pause = min(pause * 1.5, 5.0)
        else:
            raise CommandError("context canceled")


async def _connect(
    connection: dict[str, Any],
    options: dict[str, Any],
    bastion: asyncssh.SSHClientConnection | None,
) -> asyncssh.SSHClientConnection:
    host, port = connection["host"], int(connection["port"])
    try:
        if bastion is not None:
            return await asyncssh.connect(host, port, tunnel=bastion, **options)
        plain = await asyncio.to_thread(
            socket.create_connection, (host, port), connection["perDialTimeout"] or None
        )
        plain.setblocking(False)
        return await asyncssh.connect(sock=plain, **options)
    except asyncssh.HostKeyNotVerifiable as error:
        raise CommandError("ssh: handshake failed: ssh: host key mismatch") from error
    except asyncssh.PermissionDenied as error:
        tried = ["none"]
        tried += ["publickey"] if options["client_keys"] else []
        tried += ["password", "keyboard-interactive"] if "password" in options else []
        raise CommandError(
            "ssh: handshake failed: ssh: unable to authenticate, "
            f"attempted methods [{' '.join(tried)}], no supported methods remain"
        ) from error
    except asyncssh.ChannelOpenError as error:
        raise CommandError(f"ssh: rejected: connect failed ({error.reason})") from error
    except asyncssh.Error as error:
        raise CommandError(f"ssh: handshake failed: {error}") from error
    except socket.gaierror as error:
        raise CommandError(f"dial tcp: lookup {host}: no such host") from error
    except TypeError as error:  # the connection is gone, so that asyncssh finds no peer's address
        raise CommandError("ssh: handshake failed: EOF") from error
    except TimeoutError as error:
        raise CommandError(f"dial tcp {host}:{port}: i/o timeout") from error
    except OSError as error:
        raise CommandError(f"dial tcp {host}:{port}: connect: {reason(error)}") from error
