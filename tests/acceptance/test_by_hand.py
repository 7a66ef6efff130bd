"""A server that somebody started by hand is the way back, where it can be."""

from __future__ import annotations

import json

import pytest

from sandbox import Host
from tests.acceptance.stack import MODELS, SGLANG, Stack, serves, settings, unit, used_mib

START = (
    "/opt/vllm/bin/python3 -m vllm.entrypoints.openai.api_server --model /models/MiniMax-M2.5 "
    "--served-model-name by-hand --tensor-parallel-size 8 --port 8000"
)
AWAIT = "until grep -q 'Application startup complete' /tmp/by-hand.log; do sleep 0.1; done"


def start_by_hand(box: Host, how: str = START) -> None:
    box.ssh(f"cd /srv; A='x \"y\" $z' VLLM_API_KEY=poison nohup {how} </dev/null "
            f">/tmp/by-hand.log 2>&1 & {AWAIT}")  # fmt: skip


@pytest.fixture
def broken(box: Host) -> None:
    """The new model does not load."""
    crash = {"models": {MODELS[SGLANG]: {"crash": "loading"}}}
    box.write("/etc/practice/engine.json", json.dumps(crash))


@pytest.mark.usefixtures("broken")
def test_a_failed_cutover_starts_it_again_as_it_was(stack: Stack, box: Host) -> None:
    start_by_hand(box)
    shown = stack.preview().text
    assert "started by hand, is the way back, best effort" in shown
    assert "the cutover ends pid " in shown and "; nothing serves for a time not measured" in shown
    assert box.exec(["ls", "/var/lib/cutover"], check=False).returncode, "a preview keeps nothing"
    run = stack.up(fails=True)
    assert "started by hand, is the way back, best effort" in run.text
    assert "by-hand serves again, verified" in run.text
    assert "poison" not in run.text
    main = unit(box, "cutover-captured.service", "MainPID")
    environ = box.read(f"/proc/{main}/environ").split("\0")
    assert 'A=x "y" $z' in environ and "VLLM_API_KEY=poison" in environ
    assert box.exec(["readlink", f"/proc/{main}/cwd"]).stdout == "/srv\n"
    path = "/etc/systemd/system/cutover-captured.service"
    assert box.exec(["stat", "-c", "%a", path, "/etc/cutover/by-hand.env"]).stdout == "600\n600\n"
    assert unit(box, "cutover-captured.service", "UnitFileState") == "enabled"
    box.write("/etc/practice/engine.json", "{}")
    stack.up()
    assert serves(box) == MODELS[SGLANG]
    assert box.exec(["ls", path], check=False).returncode, "nothing of it stays"
    stack.destroy()
    assert used_mib(box) == [0] * 8


def test_without_its_environment_there_is_no_way_back_and_that_is_refused(
    stack: Stack, box: Host
) -> None:
    start_by_hand(box, f"env -i {START}")
    assert serves(box) == "by-hand"
    refusal = "`stage` would refuse: there would be no way back to pid"
    assert refusal in stack.preview().text
    run = stack.up(fails=True)
    assert "its environment cannot be read: end it yourself, or set" in run.text
    assert serves(box) == "by-hand"
    stack.configure(hosts={"box": settings(box, accept_no_rollback=True)})
    shown = stack.preview().text
    assert "as accept_no_rollback allows" in shown and refusal not in shown
    run = stack.up()
    assert "as accept_no_rollback allows" in run.text
    assert serves(box) == MODELS[SGLANG]
