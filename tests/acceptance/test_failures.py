"""What `pulumi up` does when something goes wrong: the box ends with a verified model."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from sandbox import Host
from tests.acceptance.stack import (
    MODELS,
    SGLANG,
    UNITS,
    VLLM,
    Stack,
    alive,
    enabled,
    events,
    serves,
    settings,
    start_detached,
    unit,
    used_mib,
)
from tests.faults.inject import wait

VLLM_FILE = f"/etc/systemd/system/{UNITS[VLLM]}"
SGLANG_FILE = f"/etc/systemd/system/{UNITS[SGLANG]}"

# Takes GPU 5 in the middle of a release, when `stage` has said yes, and is never ended.
NOTEBOOK = """
import glob, os, time
while not any('"phase": "release"' in open(p).read()
              for p in set(glob.glob("/var/lib/cutover/transactions/*/events.jsonl")) - set(%r)):
    time.sleep(0.01)
os.execvp("gpu-hold", ["gpu-hold", "--gpu", "5", "--mib", "1024"])
"""


def misbehave(box: Host, deployment: str, **how: object) -> None:
    """Tells the practice engine what to do wrong with a model from its next start on."""
    box.write("/etc/practice/engine.json", json.dumps({"models": {MODELS[deployment]: how}}))


def notebook(box: Host) -> int:
    """Starts the notebook that waits for the next release."""
    known = box.exec(["sh", "-c", "ls /var/lib/cutover/transactions/*/events.jsonl"]).stdout.split()
    return start_detached(box, "python3", "-c", NOTEBOOK % known)


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"crash": "loading", "error": "out_of_memory"}, "CUDA out of memory"),
        ({"hang": "loading"}, "not ready within 5 s"),
    ],
    ids=["crashes", "hangs"],
)
def test_a_model_that_does_not_load_is_rolled_back_and_the_same_config_tries_again(
    serving: Stack, box: Host, canary: int, how: dict[str, object], says: str
) -> None:
    serving.edit(VLLM, "load: 900", "load: 5")
    misbehave(box, VLLM, **how)
    serving.configure(active=VLLM)
    run = serving.up(fails=True)
    assert says in run.text
    assert f"{SGLANG} serves again, verified" in run.text
    assert serves(box) == MODELS[SGLANG]
    assert enabled(box) == {UNITS[SGLANG]}
    assert unit(box, UNITS[VLLM], "ActiveState") in ("inactive", "failed")
    again = serving.up(fails=True)
    assert f"stage: {SGLANG} -> {VLLM}" in again.text
    assert f"stopping {UNITS[SGLANG]}" in again.text, "it says that it stops the serving model"
    assert serves(box) == MODELS[SGLANG]
    misbehave(box, VLLM)
    serving.up()
    assert serves(box) == MODELS[VLLM]
    assert enabled(box) == {UNITS[VLLM]}
    assert alive(box, canary)


def test_a_failed_switch_that_is_reverted_ends_green_with_the_old_model_untouched(
    serving: Stack, box: Host
) -> None:
    misbehave(box, VLLM, crash="loading")
    serving.configure(active=VLLM)
    serving.up(fails=True)
    before = unit(box, UNITS[SGLANG], "MainPID")
    serving.configure(active=SGLANG)
    serving.up()
    assert serves(box) == MODELS[SGLANG]
    assert unit(box, UNITS[SGLANG], "MainPID") == before, "a healthy model is not restarted"
    assert serving.up().counts == {"unchanged": 18}


def test_a_reverted_config_is_never_green_while_nothing_serves(serving: Stack, box: Host) -> None:
    broken = {MODELS[name]: {"crash": "loading"} for name in UNITS}
    box.write("/etc/practice/engine.json", json.dumps({"models": broken}))
    serving.configure(active=VLLM)
    run = serving.up(fails=True)
    assert "NOTHING SERVES" in run.text
    assert serves(box) is None
    serving.configure(active=SGLANG)
    assert "NOTHING SERVES" in serving.up(fails=True).text
    box.write("/etc/practice/engine.json", "{}")
    serving.up()
    assert serves(box) == MODELS[SGLANG]
    assert enabled(box) == {UNITS[SGLANG]}


def test_a_model_that_died_by_itself_is_found_by_any_up_that_has_something_to_do(
    serving: Stack, box: Host
) -> None:
    box.exec(["systemctl", "stop", UNITS[SGLANG]])
    serving.edit(VLLM, "enable-auto-tool-choice: true", "enable-auto-tool-choice: false")
    serving.up()
    assert serves(box) == MODELS[SGLANG]


def flag_change(stack: Stack) -> tuple[str, str]:
    """Changes the active deployment; gives its unit file and what a roll-back must restore."""
    stack.edit(SGLANG, "  steps: 3", "  steps: 2")
    return SGLANG_FILE, "--speculative-num-steps 3"


def switch_and_flag_change(stack: Stack) -> tuple[str, str]:
    """Switches to a deployment that is changed at the same time."""
    stack.edit(VLLM, "max_tokens: 512", "max_tokens: 511")
    stack.edit(VLLM, "enable-auto-tool-choice: true", "enable-auto-tool-choice: false")
    stack.configure(active=VLLM)
    return VLLM_FILE, "--enable-auto-tool-choice"


@pytest.mark.parametrize("change", [flag_change, switch_and_flag_change])
def test_a_gpu_taken_after_stage_closes_the_gate_and_leaves_the_unit_as_it_was(
    serving: Stack, box: Host, change: Callable[[Stack], tuple[str, str]]
) -> None:
    path, old_flag = change(serving)
    before = box.read(path)
    assert old_flag in before
    pid = notebook(box)
    run = serving.up(fails=True)
    assert "box-gate" in run.text
    assert "GPU 5 1024 MiB" in run.text and f"pid {pid}" in run.text
    assert box.read(path) == before
    assert "install" not in events(box)[-4:], "the unit was never replaced"
    assert serves(box) == MODELS[SGLANG]
    assert enabled(box) == {UNITS[SGLANG]}
    assert alive(box, pid), "the notebook is nobody's to end"
    assert old_flag in unit(box, path.rpartition("/")[2], "ExecStart")


def test_a_notebook_on_a_gpu_is_refused_while_the_old_model_still_serves(
    serving: Stack, box: Host
) -> None:
    pid = start_detached(box, "gpu-hold", "--gpu", "5", "--mib", "1024")
    before = unit(box, UNITS[SGLANG], "MainPID")
    serving.configure(active=VLLM)
    run = serving.up(fails=True)
    assert f"pid {pid}" in run.text and "it is no inference server" in run.text
    assert unit(box, UNITS[SGLANG], "MainPID") == before
    assert serves(box) == MODELS[SGLANG]
    assert alive(box, pid)


def test_a_server_started_by_hand_is_ended_and_a_stranger_is_not(
    stack: Stack, box: Host, canary: int
) -> None:
    started = box.ssh(
        "nohup /opt/vllm/bin/python3 -m vllm.entrypoints.openai.api_server "
        "--model /models/MiniMax-M2.5 --served-model-name by-hand --tensor-parallel-size 8 "
        "--port 8000 </dev/null >/tmp/by-hand.log 2>&1 & "
        "until grep -q 'Application startup complete' /tmp/by-hand.log; do sleep 0.1; done; echo $!"
    )
    pid = int(started.stdout)
    assert serves(box) == "by-hand"
    run = stack.up()
    assert "started by hand, is the way back, best effort" in run.text
    assert f"ending pid {pid}" in run.text
    assert serves(box) == MODELS[SGLANG]
    assert not alive(box, pid)
    assert alive(box, canary)
    assert box.ssh("true").returncode == 0, "its session's ssh.service is still there"


def test_a_unit_of_somebody_else_under_one_of_our_names_is_refused(stack: Stack, box: Host) -> None:
    foreign = "[Service]\nExecStart=/bin/sleep 1d\n"
    box.write(SGLANG_FILE, foreign)
    run = stack.up(fails=True)
    assert f"{SGLANG_FILE} is there and was not written by cutover" in run.text
    assert box.read(SGLANG_FILE) == foreign


def handmade(box: Host) -> str:
    """Starts a server that somebody wrote a unit for; returns its main pid once it holds GPUs."""
    box.write(
        "/etc/systemd/system/handmade.service",
        "[Service]\nExecStart=/opt/vllm/bin/python3 -m vllm.entrypoints.openai.api_server "
        "--model /models/MiniMax-M2.5 --served-model-name m --tensor-parallel-size 8\n"
        "Restart=always\n[Install]\nWantedBy=multi-user.target\n",
    )
    box.exec(["systemctl", "enable", "--now", "handmade.service"])
    wait(lambda: serves(box) == "m", 60, "the unit that was written by hand serves")
    return unit(box, "handmade.service", "MainPID")


def test_a_foreign_unit_that_serves_is_refused_where_only_our_units_may_be_ended(
    stack: Stack, box: Host
) -> None:
    main = handmade(box)
    stack.configure(hosts={"box": settings(box, policy="managed")})
    run = stack.up(fails=True)
    assert "the host's policy is `managed`" in run.text and "handmade.service" in run.text
    assert unit(box, "handmade.service", "MainPID") == main


def test_a_foreign_unit_is_the_way_back_with_its_drop_ins_and_stays_stopped_after_a_commit(
    stack: Stack, box: Host
) -> None:
    drop_in = "/etc/systemd/system/handmade.service.d/override.conf"
    box.write(drop_in, "[Service]\nEnvironment=BY_HAND=1\n")
    handmade(box)
    misbehave(box, SGLANG, crash="loading")
    said = "handmade.service, a unit of somebody else, is the way back: it is started again as it"
    assert said in stack.preview().text
    run = stack.up(fails=True)
    assert said in run.text
    assert "handmade.service serves again, verified" in run.text
    assert "or set `active`" not in run.text
    assert serves(box) == "m"
    main = unit(box, "handmade.service", "MainPID")
    assert "BY_HAND=1" in box.read(f"/proc/{main}/environ").split("\0")
    assert box.read(drop_in) == "[Service]\nEnvironment=BY_HAND=1\n"
    assert unit(box, "handmade.service", "DropInPaths") == drop_in
    assert unit(box, "handmade.service", "UnitFileState") == "enabled"
    assert unit(box, "handmade.service", "Restart") == "always"
    misbehave(box, SGLANG)
    run = stack.up()
    assert "handmade.service stays stopped" in run.text
    assert unit(box, "handmade.service", "ActiveState") == "inactive"
    assert unit(box, "handmade.service", "UnitFileState") == "disabled"
    assert unit(box, "handmade.service", "Restart") == "always", "a hand that starts it finds it so"
    assert unit(box, "handmade.service", "DropInPaths") == drop_in


@pytest.mark.parametrize("gpus", [4, 16])
def test_a_host_with_another_number_of_gpus_than_declared_is_refused(
    stack: Stack, box: Host, gpus: int
) -> None:
    if gpus < 8:
        for name in UNITS:
            stack.edit(name, "gpus: 8", f"gpus: {gpus}")
    stack.configure(hosts={"box": settings(box, gpus=gpus)})
    run = stack.up(fails=True)
    assert f"8 GPUs answer, but the host is declared with {gpus}" in run.text
    assert used_mib(box) == [0] * 8


def test_a_unit_that_systemd_complains_about_is_refused_before_anything_stops(
    serving: Stack, box: Host
) -> None:
    serving.edit(VLLM, "python: /opt/vllm/bin/python3", "python: /opt/nowhere/bin/python3")
    serving.configure(active=VLLM)
    run = serving.up(fails=True)
    assert "/opt/nowhere/bin/python3 is not executable" in run.text
    assert serves(box) == MODELS[SGLANG]


def test_a_missing_checkpoint_is_refused_before_anything_stops(serving: Stack, box: Host) -> None:
    serving.edit(VLLM, "/models/MiniMax-M2.5", "/models/Nowhere")
    serving.configure(active=VLLM)
    run = serving.up(fails=True)
    assert "the checkpoint /models/Nowhere is not there" in run.text
    assert serves(box) == MODELS[SGLANG]
