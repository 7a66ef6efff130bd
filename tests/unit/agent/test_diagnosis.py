"""Well-known failures are named, by lines as engines and systemd write them."""

from __future__ import annotations

import pytest

from cutover_agent.diagnosis import diagnose


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.31 GiB.", "fit into"),
        ("ValueError: No available memory for the cache blocks.", "fit into the GPUs' memory"),
        ("OSError: [Errno 98] Address already in use", "its port is taken"),
        ("ERROR: [Errno 98] error while attempting to bind: address already in use", "port"),
        (
            "ValueError: No valid attention backend found for cuda with AttentionSelectorConfig("
            "kv_cache_dtype=fp8, use_mla=True). Reasons: {TRITON_MLA: [kv_cache_dtype not "
            "supported]}.",
            "FP8 KV cache",
        ),
        ("torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3690", "NCCL"),
        ("api_server.py: error: unrecognized arguments: --tensor-paralel-size", "an option"),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/models/x'", "a file"),
        ("ModuleNotFoundError: No module named 'flashinfer'", "Python package is missing"),
        (
            "RuntimeError: Failed to load torch_compile_cache/ab/x",
            "compile cache",
        ),
        ("OSError: [Errno 28] No space left on device", "a disk of the host is full"),
        ("Bus error (core dumped)", "/dev/shm is full"),
        ("a.service: Failed with result 'oom-kill'.", "main memory"),
        ("a.service: Main process exited, code=exited, status=203/EXEC", "cannot be run"),
        ("AttributeError: 'EagleWorkerV2' object has no attribute 'x'", "in its own code"),
        ("nvidia-smi: Driver/library version mismatch", "driver does not work"),
    ],
)
def test_a_well_known_failure_is_named(line: str, says: str) -> None:
    assert says in diagnose(["INFO loading", line, "Traceback (most recent call last):"])


def test_what_is_not_known_is_not_guessed() -> None:
    assert diagnose(["INFO: Started server process", "load 3/9 shards"]) == ""
    assert diagnose([]) == ""
