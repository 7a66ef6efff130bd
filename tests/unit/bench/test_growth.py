from __future__ import annotations

from bench.growth import Growth


def test_the_most_of_any_stretch_counts_and_not_the_average() -> None:
    slow, burst = [(n, 10 * n, n + 0.1) for n in range(6)], (5.2, 90, 5.3)
    growth = Growth([], [*slow, burst, (9.0, 90, 9.1)])
    assert growth.whole == 90
    assert growth.most(1.2) == 40, "from the look that began at 5"
    assert growth.most(1.4) == 50, "from the one at 4"
    assert growth.most(0.05) == 0, "no two looks are so close"
