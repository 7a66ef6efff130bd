"""Bars are for terminals that have room for them."""

from __future__ import annotations

import pytest

from cutover_agent.bars import NARROWEST, bars

PHASES = {"smoke": 0.04, "weights": 400.0, "stop": 100.0, "commit": 900.0}


@pytest.mark.parametrize("columns", [NARROWEST, 80, 200])
def test_each_part_is_a_line_and_the_longest_fills_it(columns: int) -> None:
    shown = bars(PHASES, columns)
    assert [line.split()[0] for line in shown] == ["stop", "weights", "smoke"]
    assert max(map(len, shown)) == len(shown[1]) == columns
    assert shown[0].count("#") == round(shown[1].count("#") / 4)
    assert shown[2] == "    smoke         0.0 s"


@pytest.mark.parametrize("columns", [0, NARROWEST - 1])
def test_where_there_is_no_room_there_are_none(columns: int) -> None:
    assert bars(PHASES, columns) == []


def test_where_nothing_was_measured_nothing_is_drawn() -> None:
    assert bars({}, 80) == bars({"stop": 0.0}, 80) == []
