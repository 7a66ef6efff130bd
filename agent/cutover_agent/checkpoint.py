"""Whether a checkpoint can be loaded: config, shards with their sizes, tokenizer."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from . import gguf

INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "tiktoken.model")
MOST_NAMED = 3
"""Shards that a sentence names before it counts the others."""
LONGEST_HEADER = 100_000_000
"""Bytes; the format's own limit."""

_END = re.compile(rb'"data_offsets"\s*:\s*\[\s*\d+\s*,\s*(\d+)\s*\]')


@dataclass(frozen=True)
class Facts:
    """What lies at the path of a checkpoint."""

    path: str
    files: Mapping[str, int] = field(default_factory=dict)
    """Size in bytes by name; for a single file, its own."""
    index: Optional[tuple[str, ...]] = None
    """Shards that the index names; None where there is no index."""
    ends: Mapping[str, int] = field(default_factory=dict)
    """Size in bytes that each shard's own header tells."""
    problem: str = ""
    """What keeps it from being read, as the end of a sentence."""


def reasons(facts: Facts) -> list[str]:
    """Why this checkpoint cannot be loaded, a sentence each; none where it can."""
    path = facts.path
    if facts.problem:
        return [f"the checkpoint {path} {facts.problem}"]
    if path.endswith(".gguf"):
        return []
    if not facts.files:
        return [f"the checkpoint folder {path} is empty"]
    found = [] if "config.json" in facts.files else [f"the checkpoint {path} has no config.json"]
    shards = facts.index
    if shards is None:
        shards = tuple(n for n in facts.files if n.endswith((".safetensors", ".bin", ".pt")))
        if not shards:
            found.append(f"the checkpoint {path} holds no weights")
    missing = sorted(set(shards) - set(facts.files))
    if missing:
        found.append(
            f"the checkpoint {path} lacks {_named(missing)}, of {len(set(shards))} in its index: "
            "download it again"
        )
    wrong = [
        f"{name} ({facts.files[name]} bytes of {facts.ends[name]})"
        for name in sorted(facts.ends)
        if facts.files.get(name) not in (None, facts.ends[name])
    ]
    if wrong:
        found.append(f"the checkpoint {path} has cut or damaged shards: {_named(wrong)}")
    return found


def absence(facts: Facts) -> list[str]:
    """Why there is nothing to load at all, whatever the format."""
    return [] if facts.files else reasons(facts)


def tokenizer_reasons(folder: str, files: Optional[frozenset[str]]) -> list[str]:
    """Why a tokenizer cannot be read; `files` are the names in its folder, None without one."""
    if files is None:
        return [f"the tokenizer folder {folder} is not there"]
    if not files & set(TOKENIZERS):
        return [f"the tokenizer folder {folder} holds none of {', '.join(TOKENIZERS)}"]
    return []


def config_reasons(folder: str, files: Optional[frozenset[str]]) -> list[str]:
    """Why a config folder cannot be used."""
    return [] if files and "config.json" in files else [f"{folder} holds no config.json"]


def names_in(folder: str) -> Optional[frozenset[str]]:
    """Names in a folder; None where there is none."""
    return frozenset(os.listdir(folder)) if os.path.isdir(folder) else None


def read(path: str) -> Facts:
    """Looks at a checkpoint; reads the index and each shard's header, not the weights."""
    place = Path(path)
    try:
        if not place.exists():
            return Facts(path, problem="is not there")
        if not place.is_dir():
            problem = gguf.problem(place) if path.endswith(".gguf") else "is no folder and no GGUF"
            return Facts(path, {place.name: place.stat().st_size}, problem=problem)
        files = {e.name: e.stat().st_size for e in os.scandir(path) if e.is_file()}
        index = _index(place, files)
        shards = [n for n in (index or files) if n in files and n.endswith(".safetensors")]
        return Facts(path, files, index, {name: _end(place / name) for name in shards})
    except (OSError, ValueError) as error:
        return Facts(path, problem=f"cannot be read: {error}")


def _index(place: Path, files: Mapping[str, int]) -> Optional[tuple[str, ...]]:
    for name in INDEXES:
        if name in files:
            try:
                weights = json.loads((place / name).read_bytes())["weight_map"]
                return tuple(sorted(set(weights.values())))
            except (KeyError, AttributeError, ValueError):
                raise ValueError(f"{name} is no index of shards") from None
    return None


def _end(shard: Path) -> int:
    """Where a safetensors file ends by its own header, in bytes; 0 where it has no header."""
    with open(shard, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = file.read(size) if size < LONGEST_HEADER else b""
    if len(header) < size or not header.startswith(b"{"):
        return 0
    return 8 + size + max((int(end) for end in _END.findall(header)), default=0)


def _named(items: list[str]) -> str:
    more = len(items) - MOST_NAMED
    return ", ".join(items[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
