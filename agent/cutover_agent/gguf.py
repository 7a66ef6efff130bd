"""What the header of a GGUF file tells: that it is whole, and no part of a split one."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any, BinaryIO

_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q",
            11: "<q", 12: "<d"}  # fmt: skip
_STRING, _ARRAY = 8, 9
# Values in a block and bytes of it, by the number of the tensor's type.
_TYPES = {0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34),
          9: (32, 36), 10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176),
          14: (256, 210), 15: (256, 292), 16: (256, 66), 17: (256, 74), 18: (256, 98),
          19: (256, 50), 20: (32, 18), 21: (256, 110), 22: (256, 82), 23: (256, 136), 24: (1, 1),
          25: (1, 2), 26: (1, 4), 27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2),
          34: (256, 54), 35: (256, 66), 39: (32, 17)}  # fmt: skip
_ALIGNMENT = 32


def problem(path: Path) -> str:
    """Why the file cannot be loaded, as the end of a sentence; empty when it can."""
    size = os.path.getsize(path)
    try:
        with open(path, "rb") as file:
            if file.read(4) != b"GGUF":
                return "is no GGUF file"
            _, tensors, pairs = struct.unpack("<IQQ", file.read(20))
            values = dict(_pair(file) for _ in range(pairs))
            ends = [_end(file) for _ in range(tensors)]
            data = _aligned(file.tell(), values.get("general.alignment") or _ALIGNMENT)
    except (struct.error, ValueError, OverflowError, MemoryError):
        return f"is cut or damaged: its header does not end in {size} bytes"
    parts = values.get("split.count") or 0
    if parts > 1:
        return f"is one of {parts} parts: merge them with llama-gguf-split --merge"
    whole = data + max(ends, default=0)
    return f"is cut: {size} bytes of {whole}" if size < whole else ""


def _pair(file: BinaryIO) -> tuple[str, Any]:
    name = _text(file)
    return name, _value(file, _number(file, "<I"))


def _value(file: BinaryIO, kind: int) -> Any:
    """A value; of an array only its length, since vocabularies are long."""
    if kind == _STRING:
        return _text(file)
    if kind != _ARRAY:
        return _number(file, _scalar(kind))
    inner, length = struct.unpack("<IQ", file.read(12))
    if inner in _SCALARS:
        file.seek(struct.calcsize(_scalar(inner)) * length, os.SEEK_CUR)
    else:
        for _ in range(length):
            _value(file, inner)
    return length


def _end(file: BinaryIO) -> int:
    """Where a tensor ends, in bytes from the start of all data."""
    _text(file)
    count = 1
    for _ in range(_number(file, "<I")):
        count *= _number(file, "<Q")
    kind, offset = struct.unpack("<IQ", file.read(12))
    # Of a type that is not known here, at least the start has to be there.
    block, size = _TYPES.get(kind, (1, 0))
    return int(offset) + count // block * size


def _scalar(kind: int) -> str:
    if kind not in _SCALARS:
        raise ValueError(f"unknown type {kind}")
    return _SCALARS[kind]


def _number(file: BinaryIO, form: str) -> Any:
    return struct.unpack(form, file.read(struct.calcsize(form)))[0]


def _text(file: BinaryIO) -> str:
    length = _number(file, "<Q")
    data = file.read(length) if length < 1 << 24 else b""
    if len(data) < length:
        raise ValueError("cut")
    return data.decode(errors="replace")


def _aligned(position: int, to: int) -> int:
    return (position + to - 1) // to * to
