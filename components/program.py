"""What the program does in which order: what takes a while begins first, and goes on beside it."""

from __future__ import annotations

import asyncio
import gc
import json
from typing import TYPE_CHECKING, Any

from pulumi.runtime.config import CONFIG, get_config_env

from components.facts import Asker

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulumi import ProviderResource

    from components.fleet import Plan
    from cutover.facts import Answer


async def program() -> None:
    """Registers everything, and waits until it is.

    At the end of a program the SDK looks at all that is outstanding whenever one thing is done:
    with 560 resources that took half of a preview.
    """
    gc.disable()  # a tenth of all the imports; the program ends before garbage could matter
    config = stack_config("cutover")
    # As in the settings, which take too long to read: the process that asks has to start first.
    if config.get("facts") == "false":
        plan, provider = await asyncio.gather(asyncio.to_thread(_read, config), _prepare())
        found: Mapping[str, Answer] = {}
    else:
        asker = Asker()
        plan = await asyncio.to_thread(_read, config)
        asked = asyncio.to_thread(asker.ask, plan.questions())
        found, provider = await asyncio.gather(asked, _prepare())

    from components.fleet import build

    await build(plan, found, provider).future()
    gc.freeze()  # else Python looks at every object once more before it ends


async def _prepare() -> ProviderResource:
    """Starts the plugin, which else would start with the first command only, and packs the agent
    meanwhile: both take as long as to read the catalogue, and less than the hosts' answers.
    """
    from pulumi_command import Provider

    import build

    provider = Provider("command")  # its registration is what starts the plugin
    await asyncio.to_thread(lambda: build.build().packed)
    return provider


def _read(config: Mapping[str, Any]) -> Plan:
    """Most of the program is imported here, beside the plugin or the SSH library."""
    from components.fleet import read

    return read(config)


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
