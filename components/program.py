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

    from components.fleet import Plan


async def program() -> None:
    """Registers everything, and waits until it is.

    At the end of a program the SDK looks at all that is outstanding whenever one thing is done:
    with 560 resources that took half of a preview.
    """
    gc.disable()  # a tenth of all the imports; the program ends before garbage could matter
    config = stack_config("cutover")
    asker = None if config.get("facts") == "false" else Asker()

    from pulumi_command import Provider

    # Its registration starts the plugin, which else would start with the first command only.
    provider = Provider("command")
    plan, _ = await asyncio.gather(asyncio.to_thread(_read, config), asyncio.to_thread(_pack))

    from components.fleet import build

    found = await asyncio.to_thread(asker.ask, plan.questions()) if asker else {}
    await build(plan, found, provider).future()
    gc.freeze()  # else Python looks at every object once more before it ends


def _read(config: Mapping[str, Any]) -> Plan:
    """Most of the program is imported here, beside the plugin and the SSH library."""
    from components.fleet import read

    return read(config)


def _pack() -> None:
    """Keeps the agent's archive ready; to compress it takes as long as to read the catalogue."""
    import build

    assert build.build().packed


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
