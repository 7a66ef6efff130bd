"""How the provider logs in to a host, and how long it tries."""

from __future__ import annotations

import pulumi
from pulumi_command import remote

from cutover.host import Host, Keys

DIALS = 20
"""How often a failed dial is repeated. The provider pauses in between, 0.1 s at first and 5 s from
the tenth time on: a host that refuses, as one that boots does, is tried for about a minute."""
SECONDS_TO_DIAL = 5
"""How long each dial may take: a host that says nothing at all is given up within three minutes."""


def connection(host: Host, keys: Keys) -> remote.ConnectionArgs:
    """The connection of every command to this host."""
    return remote.ConnectionArgs(
        host=host.address,
        port=host.port,
        user=host.user,
        private_key=_secret(keys.host),
        private_key_password=_secret(host.key_passphrase),
        host_key=host.host_key,
        dial_error_limit=DIALS,
        per_dial_timeout=SECONDS_TO_DIAL,
        proxy=_proxy(host, keys),
    )


def _proxy(host: Host, keys: Keys) -> remote.ProxyConnectionArgs | None:
    """The jump host on the way, if there is one."""
    hop = host.proxy
    if hop is None:
        return None
    return remote.ProxyConnectionArgs(
        host=hop.address,
        port=hop.port,
        user=hop.user,
        private_key=_secret(keys.proxy),
        private_key_password=None if hop.key_file else _secret(host.key_passphrase),
        host_key=hop.host_key,
        dial_error_limit=DIALS,
        per_dial_timeout=SECONDS_TO_DIAL,
    )


def _secret(text: str | None) -> pulumi.Output[str] | None:
    return pulumi.Output.secret(text) if text else None
