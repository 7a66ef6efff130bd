"""What a person on the host can do: see who holds it, clear a lock, go back."""

from __future__ import annotations

import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from sandbox import Host
from tests.acceptance.stack import (
    MODELS,
    SGLANG,
    UNITS,
    VLLM,
    Stack,
    enabled,
    serves,
    settings,
    unit,
)
from tests.faults.inject import kill_agent, wait


def background(box: Host, *argv: str) -> None:
    box.exec(["systemd-run", "--quiet", "--collect", *argv])


def test_back_serves_the_previous_deployment_again_and_back_again_the_other(
    serving: Stack, box: Host
) -> None:
    none = box.exec(["cutover", "back"], check=False)
    assert "there is nothing to go back to" in none.stderr
    serving.configure(active=VLLM)
    serving.up()
    done = box.exec(["cutover", "back"])
    assert f"{SGLANG} serves again" in done.stdout
    assert serves(box) == MODELS[SGLANG]
    assert enabled(box) == {UNITS[SGLANG]}
    shown = serving.preview("--expect-no-changes", fails=True).text
    assert f"{SGLANG} serves, {VLLM} is declared" in shown
    box.exec(["cutover", "back"])
    assert serves(box) == MODELS[VLLM]
    serving.preview("--expect-no-changes")


def test_a_live_cutover_is_told_with_owner_age_and_phase_and_cannot_be_unlocked(
    serving: Stack, box: Host
) -> None:
    assert box.exec(["cutover", "unlock"]).stdout == "nothing is locked\n"
    serving.configure(active=VLLM)
    serving.up()
    slow = {"models": {MODELS[SGLANG]: {"load_seconds": 40}}}
    box.write("/etc/practice/engine.json", json.dumps(slow))
    background(box, "/usr/local/bin/cutover", "back")
    wait(lambda: " in ready" in box.exec(["cutover", "status"], check=False).stdout, 60, "loads")
    shown = box.exec(["cutover", "status"], check=False)
    assert shown.returncode == 3
    assert f"a cutover to {SGLANG} by root is under way, " in shown.stdout
    unlock = box.exec(["cutover", "unlock"], check=False)
    assert unlock.returncode == 3 and "it is alive, so it is left alone" in unlock.stdout
    second = box.exec(["cutover", "back"], check=False)
    assert second.returncode == 1 and "is under way" in second.stderr
    serving.edit(VLLM, "enable-auto-tool-choice: true", "enable-auto-tool-choice: false")
    assert "is under way" in serving.up(fails=True).text, "another operator's up is told the same"
    wait(lambda: serves(box) == MODELS[SGLANG], 120, "the first one ends as it would have")


def test_of_two_operators_at_once_one_switches_and_the_other_is_told(
    serving: Stack, box: Host, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Each from a clone and a state of its own, so that no lock of Pulumi is between them."""
    other = Stack(tmp_path_factory.mktemp("other"))
    other.configure(active=SGLANG, hosts={"box": settings(box)})
    other.up()
    serving.configure(active=VLLM)
    other.edit(SGLANG, "  steps: 3", "  steps: 2")
    box.write("/etc/practice/engine.json", json.dumps({"load_seconds": 20}))
    with ThreadPoolExecutor() as pool:
        words = ("up", "--yes", "--skip-preview", "--non-interactive", "--stack", "test")
        runs = list(pool.map(lambda who: who._run(*words, check=False), (serving, other)))
    assert sorted(bool(run.code) for run in runs) == [False, True], [run.text for run in runs]
    told = next(run.text for run in runs if run.code)
    won = SGLANG if runs[0].code else VLLM
    assert re.search(rf"a cutover to {won} by root from \S+ is under way, \d+ s old, in \w+", told)
    assert (serves(box), enabled(box)) == (MODELS[won], {UNITS[won]})
    steps = "--speculative-num-steps 2" in unit(box, UNITS[SGLANG], "ExecStart")
    assert steps == (won == SGLANG)


def test_unlock_finishes_a_cutover_that_nobody_carries_on(serving: Stack, box: Host) -> None:
    serving.configure(active=VLLM)
    serving.up()
    box.write("/etc/practice/engine.json", json.dumps({"load_seconds": 20}))
    recovery = "/etc/systemd/system/cutover-recover.service"
    reload = "systemctl daemon-reload"
    box.exec(["sh", "-c", f"mv {recovery} /root && {reload}"])
    background(box, "/usr/local/bin/cutover", "back")
    wait(lambda: " in ready" in box.exec(["cutover", "status"], check=False).stdout, 60, "loads")
    kill_agent(box, subprocess.Popen(["true"]))
    box.exec(
        ["sh", "-c", f"mv /root/cutover-recover.service {recovery} && systemctl daemon-reload"]
    )
    done = box.exec(["cutover", "unlock"])
    assert done.stdout == f"the cutover to {SGLANG} had broken off; it is finished now: serving\n"
    assert serves(box) == MODELS[SGLANG]


def test_hooks_run_around_a_cutover_and_a_failing_one_stops_it_before_the_stop(
    serving: Stack, box: Host
) -> None:
    note = ["sh", "-c", 'echo "$CUTOVER_EVENT $CUTOVER_DEPLOYMENT" >> /root/hooks']
    hooks = {"before_stop": note, "after_commit": note, "after_rollback": note}
    serving.configure(active=VLLM, hosts={"box": settings(box, hooks=hooks)})
    serving.up()
    broken = {"models": {MODELS[SGLANG]: {"crash": "loading"}}}
    box.write("/etc/practice/engine.json", json.dumps(broken))
    serving.configure(active=SGLANG)
    serving.up(fails=True)
    assert box.read("/root/hooks").splitlines() == [
        f"before_stop {VLLM}",
        f"after_commit {VLLM}",
        f"before_stop {SGLANG}",
        f"after_rollback {SGLANG}",
    ]
    hooks["before_stop"] = ["sh", "-c", "echo the balancer says no; exit 1"]
    serving.configure(hosts={"box": settings(box, hooks=hooks)})
    run = serving.up(fails=True)
    assert "before_stop: sh exits 1: the balancer says no: nothing is stopped" in run.text
    assert "nothing was stopped or changed" in run.text
    assert serves(box) == MODELS[VLLM]
    assert enabled(box) == {UNITS[VLLM]}


def test_a_sudo_that_wants_a_password_or_a_terminal_is_told_before_anything_is_touched(
    stack: Stack, box: Host
) -> None:
    stack.configure(hosts={"box": settings(box, user="operator")})
    for rules in (
        "operator ALL=(ALL) ALL\n",
        "Defaults requiretty\noperator ALL=(ALL) NOPASSWD: ALL\n",
    ):
        box.write("/etc/sudoers.d/operator", rules, 0o440)
        for run in (stack.preview(), stack.up(fails=True)):
            assert "sudo does not let this user in without a password or a terminal" in run.text
            assert "nothing was touched" in run.text
    assert box.exec(["ls", "/usr/local/lib/cutover"], check=False).returncode
