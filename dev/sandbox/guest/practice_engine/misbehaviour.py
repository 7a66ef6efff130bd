"""What can go wrong in an engine: one entry here is one more misbehaviour.

In engine.json `{"crash": "loading"}` names the moment: starting (first GPU context), loading
(half of the shards) or serving (a second after it became ready). `{"error": "nccl"}` chooses what
a crash says.
"""

from __future__ import annotations

import time
from typing import Any


class EngineError(RuntimeError):
    """Stands for an error of the engine; `kind` is the class that the real one raises."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


ERRORS = {
    "out_of_memory": (
        "torch.OutOfMemoryError",
        "CUDA out of memory. Tried to allocate 1.31 GiB. GPU 0 has a total capacity of 94.97 GiB "
        "of which 812.00 MiB is free. Including non-PyTorch memory, this process has 94.16 GiB "
        "memory in use. Of the allocated memory 93.02 GiB is allocated by PyTorch, and 311.43 MiB "
        "is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try "
        "setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
    ),
    "nccl": (
        "torch.distributed.DistBackendError",
        "NCCL error in: ProcessGroupNCCL.cpp:3690, unhandled system error (run with "
        "NCCL_DEBUG=INFO for details), NCCL version 2.27.5",
    ),
    "fp8_kv_cache": (
        "ValueError",
        "No valid attention backend found for cuda with AttentionSelectorConfig(head_size=576, "
        "dtype=torch.bfloat16, kv_cache_dtype=fp8, use_mla=True). Reasons: {FLASHMLA: [compute "
        "capability not supported], TRITON_MLA: [kv_cache_dtype not supported]}.",
    ),
    "attribute": (
        "AttributeError",
        "'EagleWorkerV2' object has no attribute 'draft_extend_attn_backend'",
    ),
}


def crash(behaviour: dict[str, Any]) -> None:
    """Raise what the real engine would."""
    raise EngineError(*ERRORS[behaviour["error"]])


def hang(_: dict[str, Any]) -> None:
    """Stay as it is for ever; a signal still ends it."""
    while True:
        time.sleep(3600)


MISBEHAVIOURS = {"crash": crash, "hang": hang}


def reach(moment: str, behaviour: dict[str, Any]) -> None:
    """A worker has come to this moment: do what is to go wrong at it."""
    for name, act in MISBEHAVIOURS.items():
        if behaviour[name] == moment:
            act(behaviour)
