"""Run as SGLang's server is run."""

from practice_engine.main import run
from practice_engine.style import SGLANG

if __name__ == "__main__":
    run(SGLANG)
