"""A box that somebody set up by hand is taken over without a restart, or with a normal cutover."""

from __future__ import annotations

import time
from base64 import b64encode

import pytest

from build import build
from cutover.catalogue import load_catalogue
from sandbox import Host
from tests.acceptance.stack import MODELS, SGLANG, UNITS, VLLM, Stack, enabled, serves, unit

BY_HAND = """\
[Unit]
Description=MiniMax, set up by hand

[Service]
Environment=NCCL_DEBUG=WARN HF_TOKEN=by-hand
ExecStart=/opt/vllm/bin/python3 -m vllm.entrypoints.openai.api_server --port 8000 --host 0.0.0.0 \\
  --model /models/MiniMax-M2.5 --served-model-name minimax-m2.5 --tensor-parallel-size 8 \\
  {options}
Restart=on-failure

[Install]
WantedBy=multi-user.target
"""
FOLDER = "/etc/systemd/system"
WAIT_SECONDS = 60


def options_of(stack: Stack) -> str:
    """The deployment's further options, as an operator would write them."""
    text = (stack.folder / "deployments" / f"{VLLM}.yaml").read_text()
    found = ["--trust-remote-code", "--enable-expert-parallel", "--enable-auto-tool-choice"]
    assert all(option[2:] in text or "expert" in option for option in found)
    return " ".join([*found, "--tool-call-parser minimax_m2 --reasoning-parser minimax_m2"])


@pytest.fixture
def by_hand(stack: Stack, box: Host) -> Stack:
    """The box with a unit that an operator wrote and started; the stack wants the same model."""
    text = BY_HAND.format(options=options_of(stack))
    box.write(f"/etc/systemd/system/{UNITS[VLLM]}", text)
    box.exec(["systemctl", "daemon-reload"])
    box.exec(["systemctl", "enable", "--now", UNITS[VLLM]])
    await_model(box)
    stack.configure(active=VLLM)
    return stack


def await_model(box: Host) -> None:
    end = time.monotonic() + WAIT_SECONDS
    while serves(box) != MODELS[VLLM]:
        assert time.monotonic() < end, "the unit written by hand does not serve"
        time.sleep(0.1)


def test_an_equal_unit_is_taken_over_with_its_process_and_what_ours_adds_is_told(
    by_hand: Stack, box: Host
) -> None:
    both = "secrets: [HF_TOKEN]\nenv:\n  NCCL_DEBUG: WARN\n\n"
    by_hand.edit(VLLM, "timeouts:", f"{both}timeouts:")
    by_hand.configure(secrets={"HF_TOKEN": "another"})
    assert "differs, so it is restarted: variable HF_TOKEN: another value" in by_hand.preview().text
    by_hand.configure(secrets={"HF_TOKEN": "by-hand"})
    process = unit(box, UNITS[VLLM], "MainPID")
    said = f"{UNITS[VLLM]} was written by hand and runs the same: "
    shown = by_hand.preview().text
    assert f"{said}it is taken over as it runs; pending until its next start: " in shown
    assert "refuse" not in shown
    run = by_hand.up()
    assert f"{said}taken over, its process stays" in run.text
    assert "pending until its next start: " in run.text
    assert unit(box, UNITS[VLLM], "MainPID") == process
    assert serves(box) == MODELS[VLLM]
    assert enabled(box) == {UNITS[VLLM]}
    assert "Written by cutover" in box.read(f"/etc/systemd/system/{UNITS[VLLM]}")
    saved = box.exec(["sh", "-c", f"cat /var/lib/cutover/saved/{UNITS[VLLM]}.*"]).stdout
    assert "set up by hand" in saved
    by_hand.preview("--expect-no-changes")
    by_hand.configure(active=SGLANG)
    by_hand.up()
    assert serves(box) == MODELS[SGLANG]


def test_a_unit_that_differs_is_replaced_and_is_the_way_back_as_it_was(
    by_hand: Stack, box: Host
) -> None:
    path, drop_in = f"{FOLDER}/{UNITS[VLLM]}", f"{FOLDER}/{UNITS[VLLM]}.d/nice.conf"
    box.exec(["mkdir", f"{FOLDER}/{UNITS[VLLM]}.d"])
    box.write(drop_in, "[Service]\nNice=5\nKillMode=process\n")
    box.exec(["chmod", "640", path])
    box.exec(["systemctl", "daemon-reload"])
    box.exec(["systemctl", "restart", UNITS[VLLM]])
    await_model(box)
    files = ["sh", "-c", f"stat -c '%a %n' {path} {drop_in}; cat {path} {drop_in}"]
    before = box.exec(files).stdout
    by_hand.edit(VLLM, "[minimax-m2.5]", "[minimax-new]")
    shown = by_hand.preview().text
    assert f"{UNITS[VLLM]} was written by hand and differs, so it is restarted: " in shown
    assert "--served-model-name minimax-m2.5 is missing" not in shown
    assert "--served-model-name minimax-new is missing" in shown
    assert f"{UNITS[VLLM]}, a unit of somebody else, is the way back" in shown
    assert "would refuse" not in shown

    box.write("/etc/practice/engine.json", '{"models": {"minimax-new": {"crash": "loading"}}}')
    assert "serves again, verified" in by_hand.up(fails=True).text
    assert serves(box) == MODELS[VLLM]
    assert box.exec(files).stdout == before
    assert enabled(box) == {UNITS[VLLM]}
    assert unit(box, UNITS[VLLM], "Nice") == "5"
    assert f"{UNITS[VLLM]} was written by hand and differs" in by_hand.preview().text
    process = unit(box, UNITS[VLLM], "MainPID")
    by_hand.destroy()
    assert unit(box, UNITS[VLLM], "MainPID") == process, "it is none of ours"
    assert (box.exec(files).stdout, enabled(box)) == (before, {UNITS[VLLM]})
    left = ["sh", "-c", "ls -d /var/lib/cutover /etc/cutover /etc/systemd/system/*sglang*"]
    assert box.exec(left, check=False).stdout == ""

    box.write("/etc/practice/engine.json", "{}")
    by_hand.up()
    assert serves(box) == "minimax-new"
    assert "Written by cutover" in box.read(path)
    assert unit(box, UNITS[VLLM], "DropInPaths") == ""
    saved = box.exec(["sh", "-c", "cat /var/lib/cutover/saved/*"]).stdout
    assert "set up by hand" in saved
    assert "KillMode=process" in saved
    by_hand.preview("--expect-no-changes")


def test_a_unit_and_a_server_that_run_become_files_of_a_catalogue_before_the_first_up(
    by_hand: Stack, box: Host
) -> None:
    box.exec(["sh", "-c", "base64 -d >/root/agent.pyz"], text=b64encode(build().data).decode())
    catalogue = by_hand.folder / "exported"
    catalogue.mkdir()
    for name, what in (("unit", UNITS[VLLM]), ("pid", unit(box, UNITS[VLLM], "MainPID"))):
        told = box.exec(["python3", "/root/agent.pyz", "export", what]).stdout
        (catalogue / f"{name}.yaml").write_text(told)
    for exported in load_catalogue(catalogue).values():
        assert (exported.engine, exported.checkpoint) == ("vllm", "/models/MiniMax-M2.5")
        assert exported.parsers.tool_call == "minimax_m2"
    assert box.exec(["ls", "/var/lib/cutover"], check=False).returncode != 0


def test_a_unit_by_hand_of_a_deployment_that_is_not_active_gives_way_and_is_saved(
    by_hand: Stack, box: Host
) -> None:
    by_hand.configure(active=SGLANG)
    by_hand.up()
    assert serves(box) == MODELS[SGLANG]
    assert enabled(box) == {UNITS[SGLANG]}
    assert "Written by cutover" in box.read(f"{FOLDER}/{UNITS[VLLM]}")
    saved = box.exec(["sh", "-c", f"cat /var/lib/cutover/saved/{UNITS[VLLM]}.*"]).stdout
    assert "set up by hand" in saved
    by_hand.preview("--expect-no-changes")


def test_a_store_that_was_lost_while_the_model_serves_is_made_again_without_a_restart(
    serving: Stack, box: Host
) -> None:
    process = unit(box, UNITS[SGLANG], "MainPID")
    box.exec(["rm", "-r", "/var/lib/cutover", "/usr/local/bin/cutover", "/usr/local/lib/cutover"])
    serving.preview("--expect-no-changes", fails=True)
    serving.up()
    assert unit(box, UNITS[SGLANG], "MainPID") == process
    assert enabled(box) == {UNITS[SGLANG]}
    serving.preview("--expect-no-changes")
