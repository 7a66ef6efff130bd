"""How inference servers and their workers look in a process list."""

from __future__ import annotations

import re

from .processes import Process

_TITLES = re.compile(
    r"^(VLLM::|sglang::|sgl_diffusion::|ray::|RayWorker)"  # what setproctitle writes
)
_MODULES = re.compile(r"^(vllm|sglang)(\.|$)")
_PROGRAMS = ("vllm", "sglang")

_PROTECTED = re.compile(
    r"^(nvidia-persiste|nvidia-cuda-mps|nv-hostengine|dcgm|nvidia-smi|Xorg|Xwayland|gnome-shell|"
    r"nvtop|nvitop|gpustat|prometheus-dcgm|nvidia_gpu_expo)"
)


def is_engine(process: Process) -> bool:
    """Whether a process is an inference server or one of its named workers.

    A worker's title replaces its command line; a server is known by the module or program it was
    started as, never by a word somewhere in its arguments.
    """
    argv = process.argv
    if not argv:
        return False
    if _TITLES.match(argv[0]):
        return True
    words = argv if len(argv) > 1 else tuple(argv[0].split())
    program = words[0].rpartition("/")[2]
    if not program.startswith("python"):
        return program in _PROGRAMS
    for position, word in enumerate(words[1:], 1):
        if word == "-m":
            return position + 1 < len(words) and bool(_MODULES.match(words[position + 1]))
        if not word.startswith("-"):
            return word.rpartition("/")[2] in _PROGRAMS
    return False


def is_protected(process: Process) -> bool:
    """Whether a process belongs to the driver, a display or a monitor, and is never ended."""
    program = process.argv[0].split()[0].rpartition("/")[2] if process.argv else ""
    return bool(_PROTECTED.match(process.name) or _PROTECTED.match(program))
