"""What a preview knows about hosts that answer, do not, or are not who they should be."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from sandbox import Host
from tests.acceptance.stack import (
    MODELS,
    SGLANG,
    UNITS,
    VLLM,
    Stack,
    logins,
    serves,
    settings,
    start_detached,
    unit,
)


def test_a_preview_of_a_switch_says_in_plain_words_what_it_will_do(
    serving: Stack, box: Host
) -> None:
    start_detached(box, "gpu-hold", "--gpu", "5", "--mib", "1024", "--title", "python3 train.py")
    serving.configure(active=VLLM)
    box.exec(["mv", "/models/MiniMax-M2.5", "/models/elsewhere"])
    serving.edit(VLLM, "python: /opt/vllm/", "python: /opt/nowhere/")
    shown = serving.preview().text
    assert re.search(
        rf"box: {SGLANG} serves \(.* 8 . 7\d\.\d GiB\) -> {VLLM}; nothing serves for a time not "
        rf"measured yet \(load at most 15 min\), at most .* if it fails; back to {SGLANG} on fail",
        shown,
    )
    assert "`stage` would refuse: the checkpoint /models/MiniMax-M2.5 is not there" in shown
    assert "`stage` would refuse: pid" in shown
    assert "Command /opt/nowhere/bin/python3 is not executable" in shown
    assert re.search(r"GPUs are also held by pid \d+ \(python3 train.py; root; GPU 5", shown)
    assert serves(box) == MODELS[SGLANG]


def test_the_second_switch_knows_how_long_the_load_took(serving: Stack, box: Host) -> None:
    serving.configure(active=VLLM)
    serving.up()
    serving.configure(active=SGLANG)
    assert re.search(r"nothing serves for about \d+ s \(load \d+ s last time\)", (
        serving.preview().text
    ))  # fmt: skip


def test_a_host_that_does_not_answer_is_a_warning_without_a_false_diff_and_an_error_in_up(
    serving: Stack, box: Host
) -> None:
    box.power_off()
    run = serving.preview("--expect-no-changes")
    assert "warning: box: the host cannot be asked: " in run.text
    run = serving.up(fails=True)
    assert "error: box: the host cannot be asked: " in run.text
    box.boot()
    serving.preview("--expect-no-changes")


def test_a_first_preview_needs_no_host(tmp_path: Path) -> None:
    stack = Stack(tmp_path)
    stack.configure(active=SGLANG, hosts={"box": {"address": "nowhere.invalid", "gpus": 8}})
    run = stack.preview()
    assert re.search(r"\+ \d+ to create", run.text), run.text
    assert "box: no key is pinned for nowhere.invalid" in run.text
    assert "warning: box: the host cannot be asked: " in run.text


def test_facts_of_the_whole_host_take_one_session(serving: Stack, box: Host) -> None:
    before = logins(box)
    serving.preview()
    assert logins(box) == before + 1
    told = json.loads(box.exec(["sh", "-c", "cutover facts </dev/null"]).stdout)
    assert told["serves"]["model"] == MODELS[SGLANG]
    assert told["persistence"] == "on"
    assert {holder["ours"] for holder in told["holders"]} == {True}
    assert told["memory_mib"]["available"] > 0
    assert told["disk_mib"]["/models"] > 0
    assert "ready" in told["last"]["phases"]


def test_a_host_that_has_no_agent_yet_keeps_nothing_of_the_one_that_asked(
    stack: Stack, box: Host
) -> None:
    shown = stack.preview().text
    assert f"nothing of ours serves -> {SGLANG}" in shown
    left = ["sh", "-c", "ls -d /var/lib/cutover /run/cutover /usr/local/*/cutover* /etc/cutover"]
    assert box.exec(left, check=False).stdout == ""


def test_a_key_that_is_not_pinned_is_a_warning_with_the_line_to_paste(
    serving: Stack, box: Host
) -> None:
    serving.configure(hosts={"box": settings(box, host_key=None)})
    shown = serving.preview().text
    assert f"add `host_key: {' '.join(box.host_key.split()[:2])}`" in shown
    assert "warning" in shown


def test_a_host_with_another_key_than_the_pinned_one_is_sent_nothing(
    serving: Stack, box: Host, tmp_path: Path
) -> None:
    key = tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    other = " ".join(Path(f"{key}.pub").read_text().split()[:2])
    before = logins(box)
    process = unit(box, UNITS[SGLANG], "MainPID")
    serving.configure(active=VLLM, hosts={"box": settings(box, host_key=other)})
    for run in (serving.preview(fails=True), serving.up(fails=True)):
        assert "hosts.box.host_key: " in run.text
        assert "shows another key" in run.text
    serving.configure(facts=False)
    assert "host key mismatch" in serving.up(fails=True).text
    assert logins(box) == before
    assert unit(box, UNITS[SGLANG], "MainPID") == process


@pytest.mark.parametrize("who", ["operator", "agent"])
def test_facts_use_the_login_of_the_commands(who: str, serving: Stack, box: Host) -> None:
    if who == "operator":
        serving.configure(hosts={"box": settings(box, user="operator")})
        assert f"box: {SGLANG} serves (" in serving.preview().text
        return
    socket = Path(tempfile.mkdtemp(prefix="agent")) / "socket"  # a socket's path has to be short
    ssh_agent = subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.DEVNULL)
    try:
        env = {"SSH_AUTH_SOCK": str(socket)}
        add = ["ssh-add", "-q", str(box.key_path)]
        while subprocess.run(add, env=env, capture_output=True).returncode:
            assert ssh_agent.poll() is None
        serving.env.update(env)
        serving.configure(hosts={"box": settings(box, key_file=None)})
        assert f"box: {SGLANG} serves (" in serving.preview().text
    finally:
        ssh_agent.terminate()
        ssh_agent.wait()
        shutil.rmtree(socket.parent)
