"""Faults of units that others have reported, on a practice host."""

from __future__ import annotations

from sandbox import Host
from tests.acceptance.stack import MODELS, SGLANG, UNITS, VLLM, Stack, enabled, serves, unit
from tests.acceptance.test_failures import misbehave


def test_a_model_that_fails_at_each_start_is_stopped_after_the_first_loop(
    serving: Stack, box: Host
) -> None:
    misbehave(box, VLLM, crash="starting")
    serving.edit(VLLM, "gpus: 8", "gpus: 8\nrestart: {policy: always, seconds: 1}")
    serving.configure(active=VLLM)
    serving.up(fails=True)
    assert unit(box, UNITS[VLLM], "ActiveState") in ("inactive", "failed")
    assert int(unit(box, UNITS[VLLM], "NRestarts")) <= 1
    assert serves(box) == MODELS[SGLANG]


def test_an_old_unit_that_waits_for_its_next_crash_is_stopped_for_good(
    stack: Stack, box: Host
) -> None:
    stack.edit(SGLANG, "gpus: 8", "gpus: 8\nrestart: {policy: always, seconds: 3600}")
    stack.up()
    box.exec(["systemctl", "kill", "--signal=SIGKILL", UNITS[SGLANG]])
    box.exec(["sh", "-c", f"until systemctl show {UNITS[SGLANG]} -p SubState | "
              "grep -q auto-restart; do sleep 0.05; done"])  # fmt: skip
    stack.configure(active=VLLM)
    stack.up()
    assert unit(box, UNITS[SGLANG], "ActiveState") == "inactive"
    assert (serves(box), enabled(box)) == (MODELS[VLLM], {UNITS[VLLM]})


def test_a_server_that_does_not_react_to_the_stop_signal_is_killed_at_its_limit(
    stack: Stack, box: Host
) -> None:
    misbehave(box, SGLANG, ignore_term=True)
    stack.edit(SGLANG, "  smoke: 120", "  smoke: 120\n  stop: 2")
    stack.up()
    stack.configure(active=VLLM)
    stack.up()
    assert serves(box) == MODELS[VLLM]
    assert unit(box, UNITS[SGLANG], "ActiveState") in ("inactive", "failed")


def test_after_a_reboot_only_the_active_model_takes_the_port(serving: Stack, box: Host) -> None:
    serving.configure(active=VLLM)
    serving.up()
    box.power_off()
    box.boot()
    box.exec(["sh", "-c", "until cutover status; do sleep 0.2; done >/dev/null 2>&1"])
    assert serves(box) == MODELS[VLLM]
    assert enabled(box) == {UNITS[VLLM]}
    assert unit(box, UNITS[SGLANG], "ActiveState") == "inactive"
