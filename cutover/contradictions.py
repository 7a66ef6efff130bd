"""What is wrong between the fields of one deployment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cutover.engines import ENGINES

if TYPE_CHECKING:
    from cutover.deployment import Deployment


def contradictions(one: Deployment) -> Iterator[tuple[tuple[str, ...], str]]:
    """Each fault as the path of its field and the end of a sentence."""
    engine = ENGINES[one.engine]
    for name in one.args.keys() & engine.refused.keys():
        yield ("args", name), engine.refused[name]
    if one.draft_checkpoint and not engine.draft:
        yield (
            ("draft_checkpoint",),
            f"is not for {one.engine}: name the draft model in args.speculative-config",
        )
    if engine.most_names and len(one.served_names) > engine.most_names:
        yield ("served_names",), f"holds several names: {one.engine} serves under one, give one"
    if "$" in one.python:
        yield ("python",), "holds a `$`, which systemd does not take in a program: rename it"
    if "CUDA_VISIBLE_DEVICES" in one.env:
        yield ("env", "CUDA_VISIBLE_DEVICES"), "is written from gpus: set that instead"
    if "$" in one.env.get("PATH", ""):
        yield ("env", "PATH"), "holds a `$`, which systemd does not expand here: write it out"
    for name in set(one.secrets) & one.env.keys():
        yield ("env", name), "is in secrets too: remove one of the two"
    if len(set(one.secrets)) < len(one.secrets):
        yield ("secrets",), "names a variable twice: remove one"
    drain = one.args.get("shutdown-timeout")
    if type(drain) is int and drain >= one.timeouts.stop:
        yield (
            ("timeouts", "stop"),
            f"{one.timeouts.stop} leaves no time after args.shutdown-timeout ({drain}): raise it",
        )
