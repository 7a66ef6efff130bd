"""One GPU server of the stack config: how to reach it, and what it has."""

from __future__ import annotations

import re
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, model_validator

from cutover.errors import ConfigError
from cutover.fields import ModelError, SecretText, Strict, UserName, matching, not_allowed, setting

KEY_TYPE = r"(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)|sk-[a-z0-9-]+@openssh\.com)"


def _key_text(value: str) -> str:
    if "PRIVATE KEY-----" not in value:
        raise ValueError("is not a private key: give its whole text, or its path as key_file")
    return value


def _address(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?", value):
        try:
            ip_address(value)
        except ValueError:
            not_allowed()
    return value


class Host(Strict):
    """A GPU server, and how to reach it over SSH."""

    address: Annotated[str, AfterValidator(_address)] = setting(
        "Where the host is reached.",
        "a host name or an IP address, with user and port in fields of their own",
    )
    port: int = setting(
        "Port of its SSH server.", "a whole number from 1 to 65535", 22, ge=1, le=65535
    )
    user: UserName = setting("Who logs in.", "the name of a user on the host", "root")
    sudo: bool | None = setting(
        "Whether commands run through sudo; left out: for every user but root.",
        "true or false",
        None,
    )
    key_file: str | None = setting(
        "Path of the private key; with neither this nor `key`, the SSH agent is asked.",
        "the path of a private key",
        None,
        min_length=1,
    )
    key: Annotated[str, AfterValidator(_key_text)] | None = setting(
        "The private key itself.", "the whole text of a private key", None, secret=True
    )
    key_passphrase: SecretText | None = setting(
        "What opens the private key.", "text", None, secret=True
    )
    host_key: Annotated[str, matching(KEY_TYPE + r" AAAA[0-9A-Za-z+/]{8,}={0,2}")] | None = setting(
        "The host's public key; without it any host is believed.",
        "type and key as in the host's .pub file, such as `ssh-ed25519 AAAA…`, without comment",
        None,
    )
    gpus: int = setting("How many GPUs the host has.", "a whole number from 1 to 16", ge=1, le=16)
    policy: Literal["managed", "engines"] = setting(
        "Whose processes a cutover may end: its own units', or every model server's.",
        "managed or engines",
        "engines",
    )

    protect: bool = setting(
        "Whether Pulumi refuses to destroy what serves on the host.", "true or false", False
    )
    gone: bool = setting(
        "The host is no more: nothing is sent to it, and it can be taken out of the config after "
        "one `up`.",
        "true or false",
        False,
    )

    @property
    def uses_sudo(self) -> bool:
        """Whether commands on this host run through sudo."""
        return self.user != "root" if self.sudo is None else self.sudo

    @property
    def endpoint(self) -> tuple[str, int]:
        """Address and port in one spelling, so that equal ones compare equal."""
        try:
            return str(ip_address(self.address)), self.port
        except ValueError:
            return self.address.lower(), self.port

    @model_validator(mode="after")
    def _one_way_in(self) -> Host:
        if self.key and self.key_file:
            raise ModelError([(("key_file",), "is given beside key: give one of the two")])
        if self.key_passphrase and not (self.key or self.key_file):
            text = "is given without a key: give key_file or key as well"
            raise ModelError([(("key_passphrase",), text)])
        return self


def private_key(name: str, host: Host, file: str) -> str | None:
    """The text of a host's private key; None leaves it to the SSH agent.

    Raises ConfigError where the key file cannot be read or holds something else.
    """
    if host.key_file is None:
        return host.key
    where = f"{file}: hosts.{name}.key_file: {host.key_file}"
    try:
        return _key_text(Path(host.key_file).expanduser().read_text(encoding="utf-8"))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigError(f"{where} cannot be read ({reason}): give a private key") from None
    except (RuntimeError, ValueError):
        raise ConfigError(f"{where} is not a private key: give the one without .pub") from None
