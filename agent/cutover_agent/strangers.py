"""Model servers that this program did not start, and the way back to each."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Optional

from . import environment, ports, probe
from .capture import DEPLOYMENT, key_of, started, unit_text
from .install import CAPTURED
from .order import Order, Probe, text_digest
from .release_plan import Tree
from .store import Serving

KEY = "CUTOVER_API_KEY"
"""Where a key that was given on the command line is kept for the probe."""


@dataclass(frozen=True)
class Server:
    """A model server that this program did not start, and how to ask it."""

    tree: Tree
    asked: Probe
    unit: str = ""
    """The unit that somebody wrote for it; empty where it was started by hand."""

    @property
    def name(self) -> str:
        """For people."""
        return self.unit or f"pid {self.tree.root.pid} ({self.tree.root.title})"


@dataclass(frozen=True)
class Kept:
    """A way back to such a server."""

    serving: Serving
    texts: tuple[str, ...]
    """What the store has to hold for it."""
    how: str


def ask(tree: Tree, unit: str = "") -> Optional[Server]:
    """How to ask a server, from the port that it really listens on and the model it lists."""
    urls = ports.urls_of({process.pid for process in tree.members})
    if not urls:
        return None
    key = key_of(started(tree.root))
    # All at once: a port that is for the engine's own processes may take its time to say nothing.
    with ThreadPoolExecutor(len(urls)) as pool:
        answers = list(pool.map(lambda url: probe.models(url, key), urls))
    found = [Probe(url, models[0]) for url, models in zip(urls, answers) if models]
    return Server(tree, found[0], unit) if found else None


def as_unit(order: Order, server: Server, gpus: tuple[int, ...]) -> Optional[Kept]:
    """A server started by hand, as a unit; None where it cannot be started again."""
    how = started(server.tree.root)
    if how is None:
        return None
    unit, env = unit_text(how), _env_text(how.environ, key_of(how))
    return Kept(
        _serving(order, server, gpus, DEPLOYMENT, CAPTURED, text_digest(unit), env),
        (unit, env),
        "started by hand, is the way back, best effort: it would run again as "
        f"{CAPTURED}, with the command, environment, folder and user that it has now",
    )


def unit_as_it_is(order: Order, server: Server, gpus: tuple[int, ...]) -> Kept:
    """A unit of somebody else: its files and drop-ins stay as they are."""
    env = _env_text({}, key_of(started(server.tree.root)))
    name = re.sub(r"[^a-z0-9.-]", "-", server.unit.lower())
    return Kept(
        _serving(order, server, gpus, name, server.unit, "", env),
        (env,),
        "a unit of somebody else, is the way back: it is started again as it is",
    )


def _serving(
    order: Order, server: Server, gpus: tuple[int, ...], name: str, unit: str, digest: str, env: str
) -> Serving:
    asked = Probe(server.asked.url, server.asked.model, api_key_env=KEY if _has_key(env) else "")
    taken = Order(
        order.host, order.host_gpus, name, unit, digest, gpus, "/", asked,
        policy=order.policy, deadlines=order.deadlines,
    )  # fmt: skip
    return Serving(taken, text_digest(env), "", 0.0)


def _env_text(environ: dict[str, str], key: str) -> str:
    both = {**environ, **({KEY: key} if key else {})}
    lines = [environment.line(name, value) for name, value in both.items()]
    return "# Written by cutover: the environment of a server that it did not start.\n" + "".join(
        f"{line}\n" for line in lines
    )


def _has_key(env: str) -> bool:
    return environment.value(env, KEY) is not None
