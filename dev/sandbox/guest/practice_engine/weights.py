"""Reading a checkpoint from disk as an engine does, shard by shard."""

from __future__ import annotations

import json
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CHUNK = 8 * 1024 * 1024
PRINT_SECONDS = 0.1


def config_of(model: Path, folder: str = "") -> dict[str, Any]:
    """The model's config.json, from another folder where one is given."""
    try:
        config: dict[str, Any] = json.loads((Path(folder or model) / "config.json").read_text())
        return config
    except OSError:
        raise OSError(
            f"Can't load the configuration of '{model}'. If you were trying to load it from "
            f"'https://huggingface.invalid/models', make sure you don't have a local directory "
            f"with the same name. Otherwise, make sure '{model}' is the correct path to a "
            "directory containing a config.json file"
        ) from None


def check_tokenizer(folder: Path) -> None:
    """A GGUF file comes without one that the engine can use."""
    if not (folder / "tokenizer.json").is_file():
        raise OSError(f"Can't load tokenizer for '{folder}'")


def shards_of(model: Path) -> list[Path]:
    """The files that hold the weights, in the order in which they are read."""
    if model.suffix == ".gguf":
        with model.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise ValueError(f"GGUF magic invalid: {model}")
        return [model]
    index = json.loads((model / "model.safetensors.index.json").read_text())
    return [model / name for name in sorted(set(index["weight_map"].values()))]


def has_fp8_cache(model: Path, config: dict[str, Any]) -> bool:
    """Whether the checkpoint asks for a KV cache in FP8, in either of the two files that can."""
    quantization = model / "hf_quant_config.json"
    told = json.loads(quantization.read_text()) if quantization.is_file() else {}
    scheme = config.get("quantization_config", {}).get("kv_cache_scheme")
    return bool(scheme or told.get("quantization", {}).get("kv_cache_quant_algo"))


def read_shards(shards: list[Path], share: tuple[int, int], seconds: float) -> Iterator[int]:
    """Read them, spread over `seconds`; yields how many are read.

    Every worker opens every shard, and reads the bytes of its share (rank, of how many).
    """
    rank, world = share
    started = time.monotonic()
    for number, shard in enumerate(shards, start=1):
        with shard.open("rb") as file:
            if shard.suffix == ".safetensors":
                (size,) = struct.unpack("<Q", file.read(8))
                json.loads(file.read(size))
            while number % world == rank and file.read(CHUNK):
                pass
        time.sleep(max(0.0, started + seconds * number / len(shards) - time.monotonic()))
        yield number


class Progress:
    """The line that both engines print while they read, as tqdm prints it (\\r before it)."""

    def __init__(self, total: int) -> None:
        self.total, self.started, self.printed = total, time.monotonic(), 0.0

    def show(self, done: int, prefix: str) -> None:
        """Print unless that was done a moment ago."""
        now = time.monotonic()
        if now - self.printed < PRINT_SECONDS and done not in (0, self.total):
            return
        self.printed = now
        elapsed = now - self.started
        rate = done / elapsed if done else 0
        left = _clock((self.total - done) / rate) if rate else "?"
        speed = "?it/s" if not rate else f"{rate:.2f}it/s" if rate > 1 else f"{1 / rate:.2f}s/it"
        sys.stderr.write(
            f"{prefix}\rLoading safetensors checkpoint shards: {done * 100 // self.total:3d}% "
            f"Completed | {done}/{self.total} [{_clock(elapsed)}<{left}, {speed:>10}]\n"
        )
        sys.stderr.flush()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes:02d}:{rest:02d}"
