"""What the engines' own lines say about the parts of a load."""

from __future__ import annotations

import pytest

from cutover_agent.engine_log import load_parts

VLLM = """\
(Worker_TP0 pid=712) INFO 11-30 10:00:00 [default_loader.py:314] Loading weights took 210.33 seconds
(Worker_TP1 pid=713) INFO 11-30 10:00:01 [default_loader.py:314] Loading weights took 212.50 seconds
(Worker_TP1 pid=713) INFO 11-30 10:00:03 [default_loader.py:314] Loading weights took 1.50 seconds
(Worker_TP0 pid=712) INFO 11-30 10:00:40 [monitor.py:34] torch.compile takes 31.25 s in total
(Worker_TP0 pid=712) INFO 11-30 10:01:00 [gpu_model_runner.py:5063] Graph capturing finished in \
18 secs, took 0.96 GiB
"""
SGLANG = """\
[2026-11-30 10:00:00 TP0] Load weight end. elapsed=200.10 s, type=KimiK25, avail mem=20.21 GB.
[2026-11-30 10:00:00 TP7] Load weight end. elapsed=204.75 s, type=KimiK25, avail mem=20.21 GB.
[2026-11-30 10:00:07 TP7] Load weight end. elapsed=3.25 s, type=LlamaEagle3, avail mem=18.21 GB.
[2026-11-30 10:01:00 TP0] Capture cuda graph end. Time elapsed: 12.50 s. mem usage=1.06 GB.
[2026-11-30 10:01:03 TP0] Capture draft cuda graph end. Time elapsed: 3.00 s. mem usage=0.1 GB.
[2026-11-30 10:01:04 TP0] Capture target verify CUDA graph end. elapsed=4 s, mem usage=0.2 GB.
"""


def test_of_workers_that_load_side_by_side_the_slowest_counts_and_a_draft_comes_on_top() -> None:
    assert load_parts(VLLM.splitlines()) == {"weights": 214.0, "compile": 31.25, "capture": 18.0}
    assert load_parts(SGLANG.splitlines()) == {"weights": 208.0, "capture": 19.5}


@pytest.mark.parametrize(
    "line",
    [
        "INFO torch.compile and initial profiling run took 29.93 s in total",
        "(EngineCore pid=1) INFO [monitor.py:35] torch.compile takes 29.93 s in total",
    ],
)
def test_the_words_of_other_releases_are_known(line: str) -> None:
    assert load_parts([line]) == {"compile": 29.93}


def test_a_log_that_tells_nothing_says_nothing() -> None:
    assert load_parts(["Loading weights", "Load weight end. type=Main", "", "took 5 seconds"]) == {}
