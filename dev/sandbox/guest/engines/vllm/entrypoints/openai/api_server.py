"""Run as vLLM's API server is run."""

from practice_engine.main import run
from practice_engine.style import VLLM

if __name__ == "__main__":
    run(VLLM)
