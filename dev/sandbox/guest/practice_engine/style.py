"""Where the two engines differ to somebody who looks from outside."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Style:
    """One engine's names and habits."""

    name: str
    model: tuple[str, ...]
    parallel: tuple[str, ...]
    draft: tuple[str, ...]
    core: str | None
    worker: str
    helper: str | None
    reasoning: str
    default_port: int
    binds_early: bool
    open_paths: tuple[str, ...]

    def prefix(self, role: str) -> str:
        """What stands before a line of a process's log."""
        if self.name == "vllm":
            return f"({role} pid={os.getpid()}) "
        rank = f" {role}" if role.startswith("TP") else ""
        return time.strftime(f"[%Y-%m-%d %H:%M:%S{rank}] ")

    def log(self, role: str, text: str, where: str = "core.py:1", level: str = "INFO") -> None:
        """Write one or more lines to stderr as the engine does."""
        for line in text.splitlines():
            stamp = time.strftime(f"{level} %m-%d %H:%M:%S [{where}] ")
            words = stamp if self.name == "vllm" else ""
            sys.stderr.write(f"{self.prefix(role)}{words}{line}\n")
        sys.stderr.flush()

    def tell_load(
        self, role: str, mib: int, weights: float, compiling: float, capture: float
    ) -> None:
        """Say how long the parts of a load took, in the engine's words; in seconds."""
        if self.name == "sglang":
            text = f"Load weight end. elapsed={weights:.2f} s, type=Practice, mem usage={mib} MB."
            self.log(role, text)
            self.log(
                role, f"Capture cuda graph end. Time elapsed: {capture:.2f} s. mem usage=0 GB."
            )
            return
        self.log(role, f"Loading weights took {weights:.2f} seconds", "default_loader.py:314")
        memory = f"Model loading took {mib / 1024:.2f} GiB memory and {weights:.6f} seconds"
        self.log(role, memory, "gpu_model_runner.py:3659")
        self.log(role, f"torch.compile takes {compiling:.2f} s in total", "monitor.py:34")
        captured = f"Graph capturing finished in {capture:.0f} secs, took 0.96 GiB"
        self.log(role, captured, "gpu_model_runner.py:5063")

    def role(self, rank: int) -> str:
        """A worker's name in the log."""
        return f"Worker_TP{rank}" if self.name == "vllm" else f"TP{rank}"


VLLM = Style(
    name="vllm",
    model=("model",),
    parallel=("tensor-parallel-size", "tp"),
    draft=("speculative-model",),
    core="VLLM::EngineCore",
    worker="VLLM::Worker_TP{}",
    helper=None,
    reasoning="reasoning",
    default_port=8000,
    binds_early=True,
    open_paths=("/health", "/metrics", "/version", "/ping"),
)
SGLANG = Style(
    name="sglang",
    model=("model-path", "model"),
    parallel=("tp-size", "tp", "tensor-parallel-size"),
    draft=("speculative-draft-model-path",),
    core=None,
    worker="sglang::scheduler_TP{}",
    helper="sglang::detokenizer",
    reasoning="reasoning_content",
    default_port=30000,
    binds_early=False,
    open_paths=("/health", "/metrics"),
)
