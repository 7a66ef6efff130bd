"""What changes around a healthy model never restarts it; what broke off is finished."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from sandbox import Host, start
from tests.acceptance.stack import (
    MODELS,
    ROOT,
    SGLANG,
    UNITS,
    VLLM,
    Stack,
    enabled,
    serves,
    settings,
    unit,
)
from tests.faults.inject import wait


def main_pid(box: Host) -> str:
    return unit(box, UNITS[SGLANG], "MainPID")


def test_a_changed_way_in_does_not_restart_the_model(serving: Stack, box: Host) -> None:
    before = main_pid(box)
    rotated = serving.folder / "rotated"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(rotated)], check=True)
    public = rotated.with_suffix(".pub").read_text()
    box.exec(["sh", "-c", "cat >> /etc/ssh/authorized_keys"], text=public)
    serving.configure(hosts={"box": settings(box, key_file=str(rotated))})
    serving.up()
    assert main_pid(box) == before
    serving.configure(hosts={"box": settings(box, user="operator")})
    serving.up()
    assert main_pid(box) == before
    serving._run("refresh", "--yes", "--skip-preview", "--stack", serving.name)
    serving.up()
    assert (main_pid(box), serves(box)) == (before, MODELS[SGLANG])


def test_a_newer_agent_does_not_restart_the_model(serving: Stack, box: Host) -> None:
    before = main_pid(box)
    (serving.folder / "agent").unlink()
    shutil.copytree(ROOT / "agent", serving.folder / "agent")
    with (serving.folder / "agent/cutover_agent/__init__.py").open("a") as file:
        file.write("# Another version.\n")
    run = serving.up()
    assert "box-agent" in run.text
    assert (main_pid(box), serves(box)) == (before, MODELS[SGLANG])
    assert serving.up().counts == {"unchanged": 18}


def test_an_up_that_was_interrupted_is_finished_by_the_next(serving: Stack, box: Host) -> None:
    box.write("/etc/practice/engine.json", json.dumps({"load_seconds": 15}))
    serving.configure(active=VLLM)
    words = ["up", "--yes", "--skip-preview", "--non-interactive", "--stack", serving.name]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(
        ["pulumi", *words], cwd=serving.folder, env=serving.env, stdout=quiet, stderr=quiet
    ) as client:
        status = ["cutover", "status"]
        wait(lambda: " in ready" in box.exec(status, check=False).stdout, 60, "it loads")
        client.send_signal(signal.SIGINT)
    main = unit(box, UNITS[VLLM], "MainPID")
    serving.up()
    assert (serves(box), unit(box, UNITS[VLLM], "MainPID")) == (MODELS[VLLM], main)


def test_a_renamed_deployment_serves_and_leaves_nothing_of_the_old_name(
    serving: Stack, box: Host
) -> None:
    folder = serving.folder / "deployments"
    (folder / f"{SGLANG}.yaml").rename(folder / "renamed.yaml")
    serving.configure(active="renamed")
    serving.up()
    assert serves(box) == MODELS[SGLANG]
    assert enabled(box) == {UNITS[SGLANG]}
    assert box.exec(["ls", "/etc/cutover"]).stdout.split() == [f"{VLLM}.env", "renamed.env"]
    assert serving.up().counts == {"unchanged": 18}


def test_an_active_deployment_that_is_removed_gives_way_to_the_new_one(
    serving: Stack, box: Host
) -> None:
    (serving.folder / "deployments" / f"{SGLANG}.yaml").unlink()
    serving.configure(active=VLLM)
    serving.up()
    assert serves(box) == MODELS[VLLM]
    assert enabled(box) == {UNITS[VLLM]}
    assert box.exec(["ls", f"/etc/systemd/system/{UNITS[SGLANG]}"], check=False).returncode
    assert box.exec(["ls", "/etc/cutover"]).stdout.split() == [f"{VLLM}.env"]


def test_destroy_may_leave_the_serving_unit_running_without_the_agent(
    serving: Stack, box: Host
) -> None:
    before = main_pid(box)
    serving.configure(hosts={"box": settings(box, on_destroy="keep")})
    serving.up()
    serving.destroy()
    assert (main_pid(box), serves(box)) == (before, MODELS[SGLANG])
    assert enabled(box) == {UNITS[SGLANG]}
    left = box.exec(["sh", "-c", "ls -d /var/lib/cutover /usr/local/bin/cutover "
                     "/etc/systemd/system/cutover* 2>/dev/null"], check=False).stdout  # fmt: skip
    assert left == ""
    box.power_off()
    box.boot()
    wait(lambda: serves(box) == MODELS[SGLANG], 60, "it starts at boot without the agent")


def test_a_failure_on_one_of_two_hosts_and_then_the_same_and_the_reverted_config(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    state = tmp_path_factory.mktemp("hosts")
    with start("one", state=state) as one, start("two", state=state) as two:
        stack = Stack(tmp_path)
        stack.configure(active=SGLANG, hosts={"one": settings(one), "two": settings(two)})
        stack.up()
        pids = [main_pid(one), main_pid(two)]
        two.write("/etc/practice/engine.json",
                  json.dumps({"models": {MODELS[VLLM]: {"crash": "loading"}}}))  # fmt: skip
        stack.configure(active=VLLM)
        stack.up(fails=True)
        stack.up(fails=True)
        assert [serves(one), serves(two)] == [MODELS[VLLM], MODELS[SGLANG]]
        after = main_pid(two)
        assert after != pids[1]
        stack.configure(active=SGLANG)
        stack.up()
        assert [serves(one), serves(two)] == [MODELS[SGLANG]] * 2
        assert main_pid(two) == after, "a healthy model is not restarted"
