"""What well-known failures of an engine mean, and what to do about them."""

from __future__ import annotations

import re
from collections.abc import Sequence

_KNOWN = (
    (
        r"kv_cache_dtype not supported|fp8.*kv.?cache.*(not supported|unsupported)"
        r"|No valid attention backend.*kv_cache_dtype=fp8",
        "no attention backend on this GPU has an FP8 KV cache: remove `kv_cache_quant_algo` from "
        "hf_quant_config.json and `kv_cache_scheme` from config.json of the checkpoint",
    ),
    (
        r"out of memory|OutOfMemoryError|less than desired GPU memory|No available memory for the "
        r"cache blocks|KV cache.*larger than the maximum|Not enough memory",
        "the model does not fit into the GPUs' memory as it is configured: lower the context "
        "length or the memory share, or use more GPUs",
    ),
    (
        r"oom-kill|Out of memory: Killed process|status=9/KILL.*oom|result 'oom-kill'",
        "the kernel ended it for want of main memory: see `journalctl -k`",
    ),
    (
        r"address already in use|Errno 98",
        "its port is taken: `ss -ltnp` on the host shows by whom",
    ),
    (
        r"Bus error|No space left on device.*shm|/dev/shm.*No space",
        "/dev/shm is full: `df -h /dev/shm` on the host, and remove what nobody maps",
    ),
    (r"No space left on device|Errno 28", "a disk of the host is full: `df -h` on the host"),
    (
        r"NCCL error|DistBackendError|ncclSystemError|ncclUnhandledCudaError|NCCL WARN",
        "the GPUs cannot talk to each other: try again with NCCL_DEBUG=INFO in the deployment's "
        "env, and check NCCL_P2P_LEVEL and /dev/shm",
    ),
    (
        r"unrecognized arguments|no such option|invalid choice|ambiguous option",
        "the engine does not know an option: compare the deployment's args with `--help` of the "
        "engine that is installed on the host",
    ),
    (
        r"torch_compile_cache|inductor.*(corrupt|EOFError|unpickl)|Failed to load.*compil\w* cache"
        r"|UnpicklingError|Compilation cache.*(corrupt|damaged)",
        "its compile cache seems damaged: remove that folder on the host and run `pulumi up` again",
    ),
    (
        r"status=203/EXEC|Failed to (locate|execute) .*No such file",
        "the program of the unit cannot be run: check the deployment's `python` on the host",
    ),
    (
        r"No module named|ModuleNotFoundError|ImportError",
        "a Python package is missing in the engine's environment on the host",
    ),
    (
        r"FileNotFoundError|No such file or directory|does not appear to have a file named",
        "a file that it needs is not on the host: the line above names it",
    ),
    (
        r"Driver/library version mismatch|CUDA driver version is insufficient|no CUDA-capable"
        r"|CUDA error: unknown error|Unable to determine the device handle|fallen off the bus",
        "the GPU driver does not work: look at `nvidia-smi` on the host; a reboot may be due",
    ),
    (
        r"object has no attribute",
        "the engine fails in its own code: this release does not run this model as configured",
    ),
)


def diagnose(lines: Sequence[str]) -> str:
    """The sentence for the first well-known failure that a log shows; empty for none."""
    text = "\n".join(lines)
    for pattern, sentence in _KNOWN:
        if re.search(pattern, text, re.IGNORECASE):
            return sentence
    return ""
