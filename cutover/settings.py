"""What the stack config says: which deployment is active, and on which hosts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, ValidationError, model_validator

from cutover.errors import config_error
from cutover.fields import (
    ModelError,
    Name,
    SecretText,
    Strict,
    VariableName,
    process_text,
    setting,
)
from cutover.host import Host, private_key, proxy_key

__all__ = ["Host", "Settings", "load_settings", "private_key", "proxy_key"]


def _truth(value: Any) -> Any:
    """Plain values of the stack config come as text."""
    return value == "true" if value in ("true", "false") else value


def _switch(value: Any) -> Any:
    """Config values that are no objects arrive as text."""
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


class Settings(Strict):
    """The stack config of the namespace `cutover`."""

    active: str = setting(
        "The deployment that the hosts serve.", "the name of a deployment", min_length=1
    )
    hosts: dict[Name, Host] = setting(
        "The GPU servers by name.",
        "hosts by name, each with at least address and gpus",
        min_length=1,
    )
    secrets: dict[VariableName, Annotated[SecretText, AfterValidator(process_text)]] = setting(
        "Values of the variables that deployments list as secrets.",
        "names of variables with their values as text",
        {},
        secret=True,
    )
    parallel: Annotated[bool, BeforeValidator(_truth)] = setting(
        "Whether hosts are cut over side by side in place of one after the other.",
        "true or false",
        False,
    )
    catalogue: str = setting(
        "Folder of the catalogue.", "the path of a folder", "deployments", min_length=1
    )

    facts: Annotated[bool, BeforeValidator(_switch)] = setting(
        "Whether the hosts are asked what is true there, in every preview and up.",
        "true or false",
        True,
    )

    @model_validator(mode="after")
    def _different_hosts(self) -> Settings:
        first: dict[tuple[object, ...], str] = {}
        for name, host in self.hosts.items():
            # Private addresses behind different jump hosts may be equal.
            way = (host.proxy.address, host.proxy.port) if host.proxy else ()
            other = first.setdefault((*host.endpoint, *way), name)
            if other != name:
                where = f"address and port of hosts.{other} ({host.endpoint[0]}, {host.port})"
                raise ModelError([(("hosts", name), f"has the {where}: give each host its own")])
        return self

    @model_validator(mode="after")
    def _keys_that_a_header_carries(self) -> Settings:
        says = "holds a line break, which no HTTP header carries: write it on one line"
        sent = (name for name in self.secrets if name.endswith(("_API_KEY", "TOKEN")))
        broken = [name for name in sent if "\n" in self.secrets[name]]
        if broken:
            raise ModelError([(("secrets", name), says) for name in broken])
        return self


def load_settings(values: Mapping[str, Any], file: str) -> Settings:
    """Checks decoded config values, keyed without `cutover:`; ConfigError names `file`."""
    try:
        return Settings.model_validate(dict(values))
    except ValidationError as error:
        raise config_error(error, Settings, file) from None
