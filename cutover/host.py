"""One GPU server of the stack config: how to reach it, and what it has."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from cutover.errors import ConfigError
from cutover.fields import (
    AN_ABSOLUTE_PATH,
    AbsolutePath,
    ModelError,
    SecretText,
    Strict,
    UserName,
    matching,
    not_allowed,
    plain_text,
    setting,
)

KEY_TYPE = r"(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)|sk-[a-z0-9-]+@openssh\.com)"
HostKey = Annotated[str, matching(KEY_TYPE + r" AAAA[0-9A-Za-z+/]{8,}={0,2}")]
A_HOST_KEY = "type and key as in the host's .pub file, such as `ssh-ed25519 AAAA…`, without comment"


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


Command = Annotated[list[Annotated[str, AfterValidator(plain_text)]], Field(min_length=1)]
A_COMMAND = "a list of a program and its arguments, each as text"
SECONDS = "whole seconds from 1 to 3600"


class Hooks(Strict):
    """Commands that a cutover runs on the host; no shell reads them."""

    before_stop: Command | None = setting(
        "Runs before the old model is stopped; a failure ends the cutover there.", A_COMMAND, None
    )
    after_commit: Command | None = setting(
        "Runs once the new model serves, verified.", A_COMMAND, None
    )
    after_rollback: Command | None = setting(
        "Runs once a cutover has failed and is over.", A_COMMAND, None
    )
    seconds: int = setting("How long each of them may take.", SECONDS, 60, ge=1, le=3600)


class Deadlines(Strict):
    """How long the host may take to free its GPUs; the rest depends on the deployment."""

    release: int = setting(
        "For servers that are born while others are ended.", SECONDS, 60, ge=1, le=3600
    )
    gate: int = setting("Until the GPUs report that they are free.", SECONDS, 30, ge=1, le=3600)
    settle: int = setting(
        "For memory that does not go away in a roll-back, before that starts its model.",
        SECONDS,
        60,
        ge=1,
        le=3600,
    )
    kill: int = setting(
        "After SIGKILL, until a process counts as one that cannot be killed.",
        SECONDS,
        15,
        ge=1,
        le=3600,
    )

    @model_validator(mode="after")
    def _time_to_kill(self) -> Deadlines:
        if self.release <= self.kill:
            raise ModelError([(("release",), f"has to be longer than kill, {self.kill} s")])
        return self


class Proxy(Strict):
    """A jump host on the way to the GPU server."""

    address: Annotated[str, AfterValidator(_address)] = setting(
        "Where the jump host is reached.", "a host name or an IP address"
    )
    port: int = setting(
        "Port of its SSH server.", "a whole number from 1 to 65535", 22, ge=1, le=65535
    )
    user: UserName = setting("Who logs in there.", "the name of a user on the jump host", "root")
    key_file: str | None = setting(
        "Path of the private key for the jump host; left out: the host's own key.",
        "the path of a private key",
        None,
        min_length=1,
    )
    host_key: HostKey | None = setting(
        "The jump host's public key; without it any host is believed.", A_HOST_KEY, None
    )


ContainerName = Annotated[str, matching(r"[A-Za-z0-9][A-Za-z0-9_.-]*")]
ServiceName = Annotated[str, matching(r"[A-Za-z0-9][A-Za-z0-9:_.@-]*\.service")]


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
    host_key: HostKey | None = setting(
        "The host's public key; without it any host is believed.", A_HOST_KEY, None
    )
    proxy: Proxy | None = setting(
        "The jump host on the way to it.", "address, user, key_file and host_key", None
    )
    active: str | None = setting(
        "The deployment that this host serves; left out: the stack's.",
        "the name of a deployment",
        None,
        min_length=1,
    )
    hooks: Hooks = setting(
        "Commands around a cutover.", "before_stop, after_commit, after_rollback", Hooks()
    )
    deadlines: Deadlines = setting(
        "How long freeing the GPUs may take.", "release, gate, settle, kill", Deadlines()
    )
    on_destroy: Literal["remove", "keep"] = setting(
        "What `pulumi destroy` does with the model that serves: stop and remove, or keep it.",
        "remove or keep",
        "remove",
    )
    accept_no_rollback: bool = setting(
        "Whether a cutover may end what there is no way back to.", "true or false", False
    )
    gpus: int = setting("How many GPUs the host has.", "a whole number from 1 to 16", ge=1, le=16)
    policy: Literal["managed", "engines"] = setting(
        "Whose processes a cutover may end: its own units', or every model server's.",
        "managed or engines",
        "engines",
    )
    runbook: AbsolutePath = setting(
        "Where the host's runbook is written; one that was written by hand stays as it is.",
        AN_ABSOLUTE_PATH,
        "/root/production.md",
    )
    idle_mib: int = setting(
        "MiB that a GPU of this host shows with nothing on it; the gate lets so much pass.",
        "a whole number from 0 to 4096",
        0,
        ge=0,
        le=4096,
    )
    bad_remap: Literal["refuse", "warn"] = setting(
        "What a GPU with a failed row remap means for a cutover.", "refuse or warn", "refuse"
    )
    also_end: list[ContainerName] = setting(
        "Containers whose processes a cutover ends too, when they hold the GPUs.",
        "names of containers, or at least the first 12 digits of their ids",
        [],
    )
    companions: dict[ServiceName, Literal["restart", "end"]] = setting(
        "Other units that a cutover stops, such as a cache that holds GPU memory.",
        "names of units, each with restart (started again before the model) or end",
        {},
    )

    warm_mib_per_second: int = setting(
        "How fast a checkpoint is read into memory at most, while the old model serves.",
        "a whole number of MiB from 1 to 1000000",
        4096,
        ge=1,
        le=1000000,
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


@dataclass(frozen=True)
class Keys:
    """Texts of the private keys for a host and its jump host; None leaves it to the SSH agent."""

    host: str | None
    proxy: str | None = None


def private_key(name: str, host: Host, file: str) -> str | None:
    """The text of a host's private key; None leaves it to the SSH agent.

    Raises ConfigError where the key file cannot be read or holds something else.
    """
    return _key_of(host.key_file, f"{file}: hosts.{name}.key_file") if host.key_file else host.key


def proxy_key(name: str, host: Host, file: str) -> str | None:
    """The text of the private key for a host's jump host: its own, else the host's."""
    if host.proxy is None or host.proxy.key_file is None:
        return private_key(name, host, file)
    return _key_of(host.proxy.key_file, f"{file}: hosts.{name}.proxy.key_file")


def _key_of(key_file: str, field: str) -> str:
    where = f"{field}: {key_file}"
    try:
        return _key_text(Path(key_file).expanduser().read_text(encoding="utf-8"))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigError(f"{where} cannot be read ({reason}): give a private key") from None
    except (RuntimeError, ValueError):
        raise ConfigError(f"{where} is not a private key: give the one without .pub") from None
