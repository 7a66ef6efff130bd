"""How to log in to a host: keys, passwords, agents, with the error texts of the real plugin."""

from __future__ import annotations

import os
from typing import Any

import asyncssh

from .errors import CommandError, reason


async def options_of(connection: dict[str, Any]) -> dict[str, Any]:
    """What asyncssh needs to log in; nothing is taken from the user's own SSH files."""
    options: dict[str, Any] = {
        "username": connection["user"],
        "client_keys": None,
        "known_hosts": None,
        "config": None,
    }
    if "hostKey" in connection:
        try:
            pinned = asyncssh.import_public_key(connection["hostKey"])
        except asyncssh.KeyImportError as error:
            raise CommandError("failed to parse host key: ssh: no key found") from error
        options["known_hosts"] = ([pinned], [], [])
        options["server_host_key_algs"] = [pinned.get_algorithm()]
    if "privateKey" in connection:
        options["client_keys"] = [
            _key(connection["privateKey"], connection.get("privateKeyPassword"))
        ]
    if "password" in connection:
        options["password"] = connection["password"]
    agent = connection.get("agentSocketPath") or os.environ.get("SSH_AUTH_SOCK")
    if agent:
        keys = await _agent_keys(agent)
        # The real plugin, too, offers the agent's keys only where no other is given.
        options["client_keys"] = options["client_keys"] or keys
    return options


def _key(text: str, password: str | None) -> asyncssh.SSHKey:
    try:
        key = asyncssh.import_private_key(text)
    except asyncssh.KeyEncryptionError:
        pass
    except asyncssh.KeyImportError as error:
        if "assphrase" not in str(error):
            raise CommandError("ssh: no key found") from error
    else:
        if password is not None:
            raise CommandError("ssh: key is not password protected")
        return key
    if password is None:
        raise CommandError("ssh: this private key is passphrase protected")
    try:
        return asyncssh.import_private_key(text, password)
    except (asyncssh.KeyEncryptionError, asyncssh.KeyImportError) as error:
        raise CommandError(f"x509: decryption password incorrect ({error})") from error


async def _agent_keys(path: str) -> list[asyncssh.SSHKeyPair]:
    try:
        agent = await asyncssh.connect_agent(path)
    except OSError as error:
        raise CommandError(f"dial unix {path}: connect: {reason(error)}") from error
    return list(await agent.get_keys())
