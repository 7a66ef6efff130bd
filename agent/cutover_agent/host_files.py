"""Everything on the host's disk that an order needs, checked while the old model serves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from . import checkpoint, dropins, mounts, readable, requires, views
from .order import Order


def reasons(order: Order, unit_text: str, leaving: Sequence[Path] = ()) -> list[str]:
    """Why an order would fail for what lies on this host's disk, a sentence each.

    `leaving` are drop-ins that are gone before the unit starts.
    """
    files = order.files
    needed = [order.checkpoint, files.draft, files.tokenizer, files.hf_config]
    paths = [path for path in needed if path]
    unmounted = mounts.reasons(paths, files.mount, mounts.expected(), mounts.there())
    gone = {str(path.resolve()) for path in leaving}
    found = {path: text for path, text in dropins.on_host(order.unit).items() if path not in gone}
    told = [
        *requires.reasons(files.requires, requires.digests(files.requires)),
        *dropins.masked(order.unit),
        *dropins.reasons(order.unit, unit_text, found),
    ]
    # Whatever is on a mount that is missing is missing as well: one cause, one sentence.
    return [*told, *(unmounted or _contents(order))]


def _contents(order: Order) -> list[str]:
    files = order.files
    models = [checkpoint.read(path) for path in (order.checkpoint, files.draft) if path]
    judge = checkpoint.absence if files.any_format else checkpoint.reasons
    told = [reason for facts in models for reason in judge(facts)]
    if files.tokenizer:
        told += checkpoint.tokenizer_reasons(files.tokenizer, checkpoint.names_in(files.tokenizer))
    config = files.hf_config or (files.tokenizer if order.checkpoint.endswith(".gguf") else "")
    if config:
        told += checkpoint.config_reasons(config, checkpoint.names_in(config))
    if told:
        return told
    opened = [
        str(Path(facts.path) / name) if Path(facts.path).is_dir() else facts.path
        for facts in models
        for name in facts.files
    ]
    return [*readable.reasons(opened, files.user), *views.reasons(order.checkpoint, files)]
