"""Ways for a host to leave: destroyed, taken out of the config, dead, or kept from leaving."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from sandbox import Host, start
from tests.acceptance.stack import MODELS, SGLANG, Stack, serves, settings


def test_a_dead_host_ends_a_destroy_in_time_and_is_taken_out_without_being_contacted(
    stack: Stack, box: Host
) -> None:
    stack.change_code("components/connection.py", "DIALS = 20", "DIALS = 2")
    stack.up()
    box.power_off()
    started = time.monotonic()
    run = stack.destroy(fails=True)
    assert "after 2 failed attempts" in run.text
    assert time.monotonic() - started < 60, "a destroy asks the host for one delete only"
    serving = stack
    serving.configure(hosts={"box": settings(box, gone=True)})
    run = serving.up()
    assert run.counts == {"unchanged": 19}
    assert "cannot be asked" not in run.text
    serving.destroy()
    assert serving.resources() == []


def test_a_dead_host_leaves_while_another_goes_on(
    serving: Stack, box: Host, tmp_path_factory: pytest.TempPathFactory
) -> None:
    state: Path = tmp_path_factory.mktemp("second")
    with start("second", state=state) as second:
        serving.configure(hosts={"box": settings(box), "second": settings(second)})
        serving.up()
        box.power_off()
        serving.configure(hosts={"box": settings(box, gone=True), "second": settings(second)})
        serving.up()
        serving.configure(hosts={"second": settings(second)})
        run = serving.up()
        assert run.counts["deleted"] == 17
        assert serves(second) == MODELS[SGLANG]
        assert serving.up().counts == {"unchanged": 19}


def test_what_is_protected_is_not_destroyed_and_keeps_serving(serving: Stack, box: Host) -> None:
    serving.configure(hosts={"box": settings(box, protect=True)})
    assert serving.up().counts == {"unchanged": 19}
    run = serving.destroy(fails=True)
    assert "protect" in run.text
    serving.configure(hosts={"other": settings(box)})
    assert "protect" in serving.preview(fails=True).text, "to take it out is to destroy it"
    serving.configure(hosts={"box": settings(box, protect=True)})
    assert serves(box) == MODELS[SGLANG]
    serving.preview("--expect-no-changes")
    serving.configure(hosts={"box": settings(box)})
    serving.up()
    serving.destroy()
    assert serves(box) is None


def test_a_host_that_does_not_answer_fails_an_up_once_the_others_are_done(
    stack: Stack, box: Host, tmp_path_factory: pytest.TempPathFactory
) -> None:
    serving = stack
    serving.change_code("components/connection.py", "DIALS = 20", "DIALS = 2")
    serving.up()
    box.power_off()
    with start("second", state=tmp_path_factory.mktemp("second")) as second:
        serving.configure(hosts={"box": settings(box), "second": settings(second)})
        run = serving.up(fails=True)
        assert "error: box: the host cannot be asked: " in run.text
        assert serves(second) == MODELS[SGLANG]
        serving.preview("--expect-no-changes")
        serving.destroy("--continue-on-error", fails=True)
        assert serves(second) is None, "the dead host does not keep the other one"
        assert not [urn for urn in serving.resources() if "::second" in urn]
