"""Faults of units that others have reported, on a practice host."""

from __future__ import annotations

from sandbox import Host
from tests.acceptance.stack import (
    MODELS,
    SGLANG,
    UNITS,
    VLLM,
    Stack,
    alive,
    enabled,
    serves,
    start_detached,
    unit,
    used_mib,
)
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


def test_a_model_on_gpus_named_by_uuid_uses_and_frees_those_and_a_short_name_is_refused(
    stack: Stack, box: Host
) -> None:
    """F31."""
    asked = ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]
    uuids = box.exec(asked).stdout.split()
    ours = f"[{uuids[5]}, {uuids[3]}]"
    stack.edit(SGLANG, "gpus: 8", f"gpus: {ours}")
    stack.up()
    assert serves(box) == MODELS[SGLANG]
    assert [index for index, mib in enumerate(used_mib(box)) if mib] == [3, 5]
    assert [gpu["uuid"] for gpu in stack.outputs()["box"]["gpus"]] == [uuids[3], uuids[5]]
    swept = box.exec(["journalctl", "--unit", UNITS[SGLANG], "--output=cat"]).stdout
    assert "not everything is swept" not in swept
    before = unit(box, UNITS[SGLANG], "MainPID")
    short = uuids[3][:-1]
    stack.edit(SGLANG, f"gpus: {ours}", f"gpus: [{uuids[5]}, {short}]")
    said = stack.up(fails=True).text
    assert f"gpus: {short} (a short UUID) is more than one GPU of this host" in said
    assert all(uuid in said for uuid in uuids)
    assert unit(box, UNITS[SGLANG], "MainPID") == before
    assert serves(box) == MODELS[SGLANG]


def test_a_server_that_fell_back_to_the_processor_is_rolled_back(serving: Stack, box: Host) -> None:
    misbehave(box, VLLM, gpu_mib=0, context_mib=0)
    serving.configure(active=VLLM)
    run = serving.up(fails=True)
    assert f"{UNITS[VLLM]} answers, but not from its GPUs: GPU 0 0 MiB, GPU 1 0 MiB" in run.text
    assert f"{SGLANG} serves again, verified" in run.text
    assert (serves(box), enabled(box)) == (MODELS[SGLANG], {UNITS[SGLANG]})


def test_what_a_changed_kill_mode_leaves_in_the_control_group_of_a_unit_is_ended(
    serving: Stack, box: Host, canary: int
) -> None:
    left = start_detached(box, "sleep", "3600")
    group = unit(box, UNITS[SGLANG], "ControlGroup")
    folder = f"/run/systemd/system/{UNITS[SGLANG]}.d"
    box.write(f"{folder}/mode.conf", "[Service]\nKillMode=process\n")
    box.exec(["systemctl", "daemon-reload"])
    assert unit(box, UNITS[SGLANG], "KillMode") == "process"
    joins = (
        f"find /sys/fs/cgroup -path '*{group}/cgroup.procs' -exec sh -c 'echo {left} >$0' {{}} ';'"
    )
    box.exec(["sh", "-c", joins])
    assert group in box.read(f"/proc/{left}/cgroup")
    serving.configure(active=VLLM)
    assert f"ending pid {left} (sleep" in serving.up().text
    assert not alive(box, left)
    assert alive(box, canary)
    assert serves(box) == MODELS[VLLM]


def test_a_key_is_shown_to_no_other_user_of_the_host(stack: Stack, box: Host) -> None:
    stack.edit(VLLM, "gpus: 8", "gpus: 8\nsecrets: [VLLM_API_KEY]")
    stack.configure(active=VLLM, secrets={"VLLM_API_KEY": "s3cret-key"})
    stack.up()
    pid, file = unit(box, UNITS[VLLM], "MainPID"), f"/etc/cutover/{VLLM}.env"
    assert "VLLM_API_KEY=s3cret-key" in box.read(f"/proc/{pid}/environ"), "the server has it"
    look = f"systemctl show {UNITS[VLLM]}; systemctl cat {UNITS[VLLM]}; ps axeww"
    shown = box.ssh(f"{look}; cat {file} /proc/{pid}/environ", user="operator")
    assert "CUDA_DEVICE_ORDER" in shown.stdout and "--served-model-name" in shown.stdout
    assert shown.stderr.count("Permission denied") == 2
    assert "s3cret-key" not in shown.stdout + shown.stderr
