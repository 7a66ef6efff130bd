"""Deadlines and polling."""

from __future__ import annotations

import pytest

from cutover_agent.clock import Deadline, boot_id, now, wait_for


def test_a_check_that_holds_at_once_is_not_waited_for() -> None:
    started = now()
    assert wait_for(lambda: "yes", Deadline(60)) == "yes"
    assert now() - started < 1


@pytest.mark.parametrize("seconds", [0, 0.12])
def test_a_check_runs_once_more_at_the_deadline_itself(seconds: float) -> None:
    deadline = Deadline(seconds)
    late: list[bool] = []
    assert wait_for(lambda: late.append(deadline.passed), deadline, 0.05) is None
    assert late[-1]
    assert deadline.left == 0


def test_a_boot_has_one_name() -> None:
    assert boot_id() == boot_id() != ""
