"""All hosts of the stack, from its config and the catalogue."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pulumi
from pulumi.runtime.config import CONFIG, get_config_env

from cutover.advice import advice
from cutover.catalogue import load_catalogue
from cutover.deployment import Deployment
from cutover.errors import ConfigError
from cutover.host import Keys
from cutover.selection import active_deployments
from cutover.settings import Settings, load_settings, private_key, proxy_key

if TYPE_CHECKING:
    from components.step import Step

ALREADY_TOLD = 32
"""Exit status by which Pulumi's Python host knows that the error is on the screen already."""


def fleet() -> None:
    """Builds every host; wrong config ends the run with our sentences before any connection."""
    file = f"Pulumi.{pulumi.get_stack()}.yaml"
    try:
        settings = load_settings(stack_config("cutover"), file)
        catalogue = load_catalogue(Path(settings.catalogue))
        active = active_deployments(settings, catalogue, file)
        keys = {
            name: Keys(private_key(name, host, file), proxy_key(name, host, file))
            for name, host in settings.hosts.items()
        }
    except ConfigError as error:
        pulumi.log.error(str(error))
        sys.exit(ALREADY_TOLD)
    for deployment in catalogue.values():
        for sentence in advice(deployment):
            pulumi.log.warn(sentence)
    build(settings, catalogue, active, keys)


def build(
    settings: Settings,
    catalogue: Mapping[str, Deployment],
    active: Mapping[str, Deployment],
    keys: Mapping[str, Keys],
) -> None:
    """Registers the hosts, and exports what each of them serves."""
    # Imported late: the provider's SDK takes a while, and bad config shall be told at once.
    from components.gpu_host import GpuHost, GpuHostArgs

    before: Step | None = None
    for name, host in settings.hosts.items():
        args = GpuHostArgs(host, keys[name], catalogue, active[name], settings.secrets)
        gpu_host = GpuHost(name, args, before)
        # One host after the other: a host that fails stops those that come after it.
        before = None if settings.parallel else gpu_host.serve
        pulumi.export(name, gpu_host.result)


def stack_config(namespace: str) -> dict[str, Any]:
    """Every config value of a namespace, objects decoded, secrets in clear."""
    found: dict[str, Any] = {**get_config_env(), **CONFIG.get()}
    prefix = f"{namespace}:"
    return {
        key.removeprefix(prefix): _decoded(value)
        for key, value in found.items()
        if key.startswith(prefix)
    }


def _decoded(value: str) -> Any:
    """Objects and lists come as JSON; any other value is the text that the file holds."""
    return json.loads(value) if value.startswith(("{", "[")) else value
