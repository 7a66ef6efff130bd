"""Small but real checkpoints: safetensors shards with an index, config and tokenizer config."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

FP8_CACHE = {"num_bits": 8, "type": "float"}
PRACTICE_MODELS: dict[str, tuple[int, dict[str, Any]]] = {
    "MiniMax-M2.5": (
        126,
        {"architectures": ["MiniMaxM2ForCausalLM"], "model_type": "minimax_m2"},
    ),
    "Kimi-K2.5-INT4": (
        64,
        {"architectures": ["KimiK25ForConditionalGeneration"], "model_type": "kimi_k25"},
    ),
    "Kimi-K2.5-NVFP4": (
        119,
        {
            "architectures": ["KimiK25ForConditionalGeneration"],
            "model_type": "kimi_k25",
            "quantization_config": {"quant_algo": "NVFP4", "kv_cache_scheme": FP8_CACHE},
        },
    ),
    "Kimi-K2.5-EAGLE3": (
        1,
        {"architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama"},
    ),
}


def make_practice_models(folder: Path) -> None:
    """The checkpoints that every practice host has under /models."""
    for name, (shards, config) in PRACTICE_MODELS.items():
        make_checkpoint(folder / name, shards=shards, config=config)
    quantization = {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}
    _write_json(folder / "Kimi-K2.5-NVFP4" / "hf_quant_config.json", {"quantization": quantization})
    glm = {"architectures": ["GlmMoeDsaForCausalLM"], "model_type": "glm_moe_dsa"}
    (folder / "GLM-5-GGUF").mkdir()
    make_gguf(folder / "GLM-5-GGUF" / "GLM-5.gguf", tensors=78)
    (folder / "GLM-5").mkdir()
    _write_json(folder / "GLM-5" / "config.json", glm)
    _write_json(folder / "GLM-5" / "tokenizer.json", {"version": "1.0"})
    _write_json(folder / "GLM-5" / "tokenizer_config.json", {"model_max_length": 202752})


def make_checkpoint(
    folder: Path, *, shards: int = 119, shard_bytes: int = 16 * 1024, config: dict[str, Any]
) -> None:
    """Write a checkpoint; `shard_bytes` is the size of the one BF16 tensor in each shard."""
    folder.mkdir(parents=True)
    weight_map = {}
    for number in range(1, shards + 1):
        tensor = f"model.layers.{number - 1}.mlp.down_proj.weight"
        file = f"model-{number:05d}-of-{shards:05d}.safetensors"
        _write_shard(folder / file, tensor, shard_bytes)
        weight_map[tensor] = file
    index = {"metadata": {"total_size": shards * shard_bytes}, "weight_map": weight_map}
    _write_json(folder / "model.safetensors.index.json", index)
    _write_json(folder / "config.json", {"torch_dtype": "bfloat16", **config})
    _write_json(folder / "tokenizer_config.json", {"model_max_length": 262144})


def make_gguf(path: Path, *, tensors: int, tensor_bytes: int = 16 * 1024) -> None:
    """Write a merged GGUF file of BF16 tensors."""
    bf16, alignment = 30, 32
    head = b"GGUF" + struct.pack("<IQQ", 3, tensors, 2)
    head += _text("general.architecture") + struct.pack("<I", 8) + _text("glm-dsa")
    head += _text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 2) + _text("a") + _text("b")
    for number in range(tensors):
        head += _text(f"blk.{number}.ffn_down.weight")
        head += struct.pack("<IQIQ", 1, tensor_bytes // 2, bf16, number * tensor_bytes)
    with path.open("wb") as file:
        file.write(head + b"\0" * (-len(head) % alignment))
        for _ in range(tensors):
            file.write(bytes(tensor_bytes))


def _text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def _write_shard(path: Path, tensor: str, size: int) -> None:
    entry = {"dtype": "BF16", "shape": [size // 2], "data_offsets": [0, size]}
    header = json.dumps({tensor: entry, "__metadata__": {"format": "pt"}}).encode()
    header += b" " * (-len(header) % 8)
    block = bytes(range(256)) * 4096
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        for start in range(0, size, len(block)):
            file.write(block[: size - start])


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")
