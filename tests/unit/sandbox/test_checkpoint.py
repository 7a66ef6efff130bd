from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from sandbox.checkpoint import make_checkpoint


@pytest.fixture
def model(tmp_path: Path) -> Path:
    make_checkpoint(tmp_path / "m", shards=3, shard_bytes=4096, config={"model_type": "llama"})
    return tmp_path / "m"


def test_the_index_names_exactly_the_shards_that_are_there(model: Path) -> None:
    index = json.loads((model / "model.safetensors.index.json").read_text())
    there = {file.name for file in model.glob("*.safetensors")}
    assert set(index["weight_map"].values()) == there
    assert index["metadata"]["total_size"] == 3 * 4096


def test_a_shard_is_a_header_and_as_many_bytes_as_it_promises(model: Path) -> None:
    raw = (model / "model-00002-of-00003.safetensors").read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + size])
    begin, end = header["model.layers.1.mlp.down_proj.weight"]["data_offsets"]
    assert size % 8 == 0 and (begin, end) == (0, 4096) and len(raw) == 8 + size + end
