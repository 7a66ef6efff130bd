"""The gate opens on several free readings in a row, and on nothing else."""

from __future__ import annotations

import pytest

from cutover_agent import gate
from cutover_agent.gate import judge, wait_open, why_not_free
from cutover_agent.gpus import Reading
from tests.unit.agent.samples import HandClock, reading, scope

FREE, BUSY = reading(0, 0), reading(0, 900)
UNKNOWN = reading(0, 0, problem="nvidia-smi exits 9")


@pytest.mark.parametrize(
    ("seen", "host_gpus", "reason"),
    [
        (FREE, 2, ""),
        (reading(0, 1), 2, "GPU 1 1 MiB"),
        (reading(3, 0, 70000), 3, "GPU 0 3 MiB, GPU 2 70000 MiB"),
        (reading(0), 2, "1 GPUs answer, 2 are expected"),
        (reading(0, 0, 0), 2, "3 GPUs answer, 2 are expected"),
        (reading(), 0, ""),
        (UNKNOWN, 2, "nvidia-smi exits 9"),
        (reading(problem="nvidia-smi lists no GPU"), 0, "nvidia-smi lists no GPU"),
    ],
)
def test_one_reading_says_why_it_is_not_free(seen: Reading, host_gpus: int, reason: str) -> None:
    assert why_not_free(seen, scope(seen, host_gpus=host_gpus)) == reason


@pytest.mark.parametrize(
    ("series", "opens"),
    [
        ([], False),
        ([FREE], False),
        ([FREE, FREE], False),
        ([FREE, FREE, FREE], True),
        ([BUSY, FREE, FREE], False),
        ([FREE, BUSY, FREE], False),
        ([FREE, FREE, FREE, BUSY], False),
        ([FREE, FREE, UNKNOWN, FREE, FREE], False),
        ([UNKNOWN, FREE, FREE, FREE], True),
        ([FREE, FREE, reading(0), FREE, FREE], False),
    ],
)
def test_only_three_free_readings_in_a_row_open_it(series: list[Reading], opens: bool) -> None:
    verdict = judge(series, scope(FREE))
    assert verdict.open is opens
    assert bool(verdict.reason) is not opens


def test_memory_that_jumps_down_and_up_again_does_not_open_it_early() -> None:
    series = iter([70000, 41000, 0, 38000, 0, 0, 0, 12345])
    said: list[str] = []
    passage = wait_open(lambda: reading(next(series)), scope(reading(0)), 5, said.append)
    assert (passage.verdict.open, len(passage.readings)) == (True, 7)
    assert "38000 MiB" in said[-1]
    assert next(series) == 12345  # it did not read on either


@pytest.mark.parametrize(("takes", "asked"), [(0.0, [0.0, 0.05, 0.1]), (0.08, [0.0, 0.08, 0.16])])
def test_readings_begin_apart_and_what_one_takes_counts(
    takes: float, asked: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    time = HandClock(monkeypatch)
    seen: list[float] = []

    def read() -> Reading:
        seen.append(time.now)
        time.add(takes)
        return FREE

    assert wait_open(read, scope(FREE), 5, lambda _: None).verdict.open
    assert seen == pytest.approx(asked)


def test_a_gate_that_never_opens_ends_at_its_deadline_and_says_why() -> None:
    passage = wait_open(lambda: BUSY, scope(BUSY), 0.2, lambda _: None)
    assert not passage.verdict.open
    assert passage.verdict.reason == "GPU 1 900 MiB"
    assert 0.2 <= passage.seconds < 1


def test_a_tool_that_takes_half_a_minute_does_not_close_the_gate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each query takes 25 s, as on 8 cards without the persistence daemon."""
    time = HandClock(monkeypatch)
    series = iter([900, 0, 0, 0, 0])

    def slow() -> Reading:
        time.add(25)
        return reading(next(series))

    assert wait_open(slow, scope(reading(0)), 30, lambda _: None).verdict.open
    assert gate.SAMPLES == 3
