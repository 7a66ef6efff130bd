from __future__ import annotations

from bench.comparison import OURS, Comparison, in_turn
from bench.table import lines


def compared(**limits: float) -> Comparison:
    figures = {OURS: [1.0, 9.0, 2.0], "Ansible": [8.0, 7.0, 10.0], "pyinfra": [1.0]}
    return Comparison("nothing to do", "s", figures, limits=limits)


def test_medians_are_compared_so_that_one_slow_run_does_not_count() -> None:
    shown = compared().to_json()
    assert (shown["ours"], shown["others"]) == (2.0, {"Ansible": 8.0, "pyinfra": 1.0})
    assert shown["ratio"] == {"Ansible": 0.25, "pyinfra": 2.0}
    assert (shown["runs"], shown["spread"][OURS]) == (3, [1.0, 9.0])


def test_a_limit_that_is_missed_is_told_with_the_ratio_that_there_is() -> None:
    assert compared(Ansible=0.25).missed == []
    assert compared(Ansible=0.2, pyinfra=1.0).missed == [
        "0.25 of Ansible, not 0.2",
        "2.00 of pyinfra, not 1",
    ]
    assert Comparison("dead", "s", {OURS: [1.2]}, limit=1.0).missed == ["1.20 s, not 1"]


def test_the_ways_take_turns_so_that_a_busy_moment_strikes_all() -> None:
    order: list[str] = []

    def way(name: str) -> float:
        order.append(name)
        return float(len(order))

    figures = in_turn(2, {OURS: lambda: way("ours"), "other": lambda: way("other")})
    assert order == ["ours", "other", "ours", "other"]
    assert figures == {OURS: [1.0, 3.0], "other": [2.0, 4.0]}


def test_the_table_has_a_row_for_each_other_way_and_says_what_is_missed() -> None:
    first, second = lines(compared(Ansible=0.2))
    assert first.split()[:3] == ["nothing", "to", "do"]
    assert "Ansible" in first and "MISSED: 0.25 of Ansible, not 0.2" in first
    assert "pyinfra" in second and "nothing" not in second
