"""Commands of the host's owner: real programs that fail, hang, or leave a child behind."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from cutover_agent.checks import Refused
from cutover_agent.clock import Deadline
from cutover_agent.hooks import afterwards, before_stop
from cutover_agent.order import Hooks, Order
from tests.unit.agent.samples import order

LEAVES_A_CHILD = "import os, time; pid = os.fork(); print(pid or time.sleep(600), flush=True)"


def hooked(*argv: str, seconds: int = 60) -> Order:
    return order(hooks=Hooks(before_stop=argv, after_commit=argv, seconds=seconds))


def test_a_command_that_leaves_a_child_with_its_output_open_is_not_waited_for() -> None:
    said: list[str] = []
    deadline = Deadline(30)
    before_stop(hooked(sys.executable, "-c", LEAVES_A_CHILD), said.append)
    assert not deadline.passed
    os.kill(int(said[0].rpartition(" ")[2]), signal.SIGKILL)


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (("/nowhere/lb",), r"/nowhere/lb cannot be run \(No such file or directory\): nothing is"),
        (("sh", "-c", "echo one; echo two; exit 3"), "sh exits 3: two: nothing is stopped"),
        (("sleep", "60"), "sleep was not done after 1 s: nothing is stopped"),
    ],
)
def test_a_failing_command_before_the_stop_refuses_the_cutover(
    argv: tuple[str, ...], says: str
) -> None:
    with pytest.raises(Refused, match=says):
        before_stop(hooked(*argv, seconds=1), lambda _: None)


def test_a_failing_command_afterwards_is_told_and_changes_nothing() -> None:
    said: list[str] = []
    afterwards("after_commit", hooked("false"), said.append)
    assert said == ["after_commit: false exits 1"]
    afterwards("after_rollback", hooked("false"), said.append)
    assert len(said) == 1, "there is none"


def test_a_command_knows_what_happens_and_no_shell_reads_it() -> None:
    env = "os.environ['CUTOVER_EVENT'], os.environ['CUTOVER_HOST']"
    script = f"import os, sys; print({env}, sys.argv)"
    said: list[str] = []
    before_stop(hooked(sys.executable, "-c", script, "$(id); *"), said.append)
    assert said[0].endswith(": before_stop gpu-box ['-c', '$(id); *']")
