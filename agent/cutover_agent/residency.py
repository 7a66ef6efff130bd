"""How much of a file is in memory, as the kernel tells; asking reads nothing."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterable
from pathlib import Path

WINDOW = 1 << 30
"""Bytes that are mapped at once; a multiple of every page size."""

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = (
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long,
)  # fmt: skip
_LIBC.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_LIBC.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
_FAILED = ctypes.c_void_p(-1).value


def resident(paths: Iterable[Path]) -> int:
    """Bytes of these files that are in memory; raises OSError where the kernel does not tell."""
    found = 0
    for path in paths:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            for start in range(0, size, WINDOW):
                found += resident_part(file.fileno(), start, min(WINDOW, size - start))
    return found


def resident_part(descriptor: int, start: int, size: int) -> int:
    """Bytes of one part of an open file that are in memory; `start` is a multiple of a page."""
    page = mmap.PAGESIZE
    pages = (ctypes.c_ubyte * (-(-size // page)))()
    place = _LIBC.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, start)
    if place == _FAILED:
        raise OSError(ctypes.get_errno(), "mmap")
    try:
        if _LIBC.mincore(place, size, pages):
            raise OSError(ctypes.get_errno(), "mincore")
    finally:
        _LIBC.munmap(place, size)
    return min(size, bytes(pages).count(1) * page)
