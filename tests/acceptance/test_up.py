"""What `pulumi up` does when everything goes well."""

from __future__ import annotations

import json
import re

from cutover_agent.moments import DOWN
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
    logins,
    remote_commands,
    serves,
    settings,
    unit,
    used_mib,
)

TRIPS_OF_A_SWITCH, TRIPS_OF_A_FIRST_UP = 9, 15
"""Logins and remote commands, the session that asks for the facts among them; as documented."""
SECONDS_EACH_WAY = 0.075
SECONDS_OF_A_STEP = 11 * 2 * SECONDS_EACH_WAY
"""A login and a command over such a line, at least: eleven round trips."""
STEPS_AFTER_STOP = 3
"""gate, install and serve"""
MOST_GAP_SECONDS = 1.0
"""From the death of the old process to the exec of the new one."""
GATED = ["release", "gate", "install", "ready", "smoke"]


def test_the_first_up_ends_with_the_active_model_serving_and_says_so(
    stack: Stack, box: Host
) -> None:
    stack.up()
    assert 1 < logins(box) == remote_commands(box) <= TRIPS_OF_A_FIRST_UP
    assert serves(box) == MODELS[SGLANG]
    assert enabled(box) == {UNITS[SGLANG]}
    assert all(mib > 0 for mib in used_mib(box))
    shown = stack.outputs()["box"]
    assert shown["serves"] == SGLANG
    assert shown["url"] == f"http://{box.address}:8000"
    assert re.match(r"8 of 8 GPUs report 0 MiB \(before: 0 MiB\)", shown["gate"])
    assert shown["load_seconds"] > 0 and shown["tokens_per_second"] > 0
    assert 0 < shown["load_seconds"] <= shown["down_seconds"]


def test_both_units_are_on_the_host_and_only_their_secrets_are_closed(
    serving: Stack, box: Host
) -> None:
    for name, service in UNITS.items():
        mode = box.exec(["stat", "-c", "%a %U", f"/etc/systemd/system/{service}"]).stdout
        assert mode == "644 root\n"
        assert box.exec(["stat", "-c", "%a", f"/etc/cutover/{name}.env"]).stdout == "600\n"
    assert unit(box, UNITS[VLLM], "ActiveState") == "inactive"


def test_with_nothing_to_change_no_remote_command_runs(serving: Stack, box: Host) -> None:
    before = logins(box)
    assert before > 0
    run = serving.up()
    assert logins(box) == before + 1, "one session to ask the host"
    assert run.counts == {"unchanged": 19}
    serving.configure(facts=False)
    run = serving.up()
    assert logins(box) == before + 1, "and none with facts switched off"
    assert run.counts == {"unchanged": 19}


def test_a_switch_previews_and_brings_the_other_model_through_the_gate(
    serving: Stack, box: Host, canary: int
) -> None:
    parts = {"load_seconds": 1, "compile_seconds": 0.3, "capture_seconds": 1}
    box.write("/etc/practice/engine.json", json.dumps({"models": {MODELS[VLLM]: parts}}))
    serving.configure(active=VLLM)
    shown = serving.preview("--diff").text
    assert re.search(rf'~ deployment +: "{SGLANG}" => "{VLLM}"', shown)
    assert shown.count(f'"{SGLANG}" => "{VLLM}"') == 3, "once in the order, once in each service"
    assert "replace" not in shown
    before = logins(box), remote_commands(box)
    run = serving.up()
    assert run.counts == {"updated": 8, "unchanged": 11}
    trips = logins(box) - before[0], remote_commands(box) - before[1]
    assert max(trips) <= TRIPS_OF_A_SWITCH and min(trips) == run.counts["updated"] + 1
    assert serves(box) == MODELS[VLLM]
    assert enabled(box) == {UNITS[VLLM]}
    assert unit(box, UNITS[SGLANG], "ActiveState") == "inactive"
    assert events(box)[-6:] == ["stage", *GATED]
    assert alive(box, canary)
    shown = serving.outputs()["box"]
    gate = shown["gate"]
    assert [gpu["index"] for gpu in shown["gpus"]] == list(range(8))
    assert {(gpu["before_mib"], gpu["after_mib"]) for gpu in shown["gpus"]} == {(72500, 0)}
    assert shown["gate_seconds"] < 30 and shown["gpus"][0]["uuid"].startswith("GPU-")
    assert gate.startswith("8 of 8 GPUs report 0 MiB (before: 580000 MiB)")
    parts = shown["phases"]
    assert parts["weights"] >= 1 and parts["compile"] >= 0.3 and parts["capture"] >= 1
    nothing_served = sum(parts.get(part, 0) for part in DOWN)
    assert abs(nothing_served - shown["down_seconds"]) < 0.3, parts
    assert 0 < shown["gap_seconds"] <= MOST_GAP_SECONDS, parts
    assert re.search(r"smoke: .*stop \d.* gate \d.* weights \d", run.text), "told at the end of up"


def test_a_flag_change_of_the_active_deployment_shows_its_line_once_and_restarts_it(
    serving: Stack, box: Host
) -> None:
    serving.edit(SGLANG, "tool_call: kimi_k2", "tool_call: kimi_k3")
    shown = serving.preview("--diff").text
    changed = [line.split(None, 1) for line in shown.splitlines() if re.match(r"\s+[-+] ", line)]
    assert changed == [
        ["-", "--tool-call-parser kimi_k2 \\"],
        ["+", "--tool-call-parser kimi_k3 \\"],
    ]
    before = unit(box, UNITS[SGLANG], "MainPID")
    serving.up()
    assert serves(box) == MODELS[SGLANG]
    assert unit(box, UNITS[SGLANG], "MainPID") != before
    assert "--tool-call-parser kimi_k3" in unit(box, UNITS[SGLANG], "ExecStart")
    assert 0 < serving.outputs()["box"]["gap_seconds"] <= MOST_GAP_SECONDS, "with a daemon-reload"
    assert serving.up().counts == {"unchanged": 19}


def test_a_change_of_an_inactive_deployment_touches_no_gpu_and_restarts_nothing(
    serving: Stack, box: Host
) -> None:
    before = unit(box, UNITS[SGLANG], "MainPID")
    seen = events(box)
    serving.edit(VLLM, "enable-auto-tool-choice: true", "enable-auto-tool-choice: false")
    run = serving.up()
    assert run.counts == {"updated": 2, "unchanged": 17}
    assert unit(box, UNITS[SGLANG], "MainPID") == before
    assert events(box) == seen, "no transaction ran"
    assert "--enable-auto-tool-choice" not in box.read(f"/etc/systemd/system/{UNITS[VLLM]}")
    assert enabled(box) == {UNITS[SGLANG]}


def test_a_switch_from_far_away_takes_a_flag_change_of_its_target_along(
    serving: Stack, box: Host
) -> None:
    serving.edit(VLLM, "enable-auto-tool-choice: true", "enable-auto-tool-choice: false")
    serving.configure(active=VLLM)
    box.slow_down(SECONDS_EACH_WAY)
    serving.up()
    assert serves(box) == MODELS[VLLM]
    assert "--enable-auto-tool-choice" not in unit(box, UNITS[VLLM], "ExecStart")
    assert enabled(box) == {UNITS[VLLM]}
    shown = serving.outputs()["box"]
    waited = shown["down_seconds"] - shown["load_seconds"]
    assert waited < STEPS_AFTER_STOP * SECONDS_OF_A_STEP, (
        "nothing serves while a line is waited for"
    )


def test_a_load_shows_its_progress_in_the_column_of_up(stack: Stack, box: Host) -> None:
    box.write("/etc/practice/engine.json", json.dumps({"load_seconds": 7}))
    shown = stack.up().text
    assert re.search(r"load \d+/\d+ shards, \d+ s", shown), shown


def test_destroy_leaves_nothing_of_ours_on_the_host_nor_does_a_renamed_unit(
    serving: Stack, box: Host, canary: int
) -> None:
    serving.edit(SGLANG, f"unit: {UNITS[SGLANG]}", "unit: renamed.service")
    run = serving.up()
    assert serves(box) == MODELS[SGLANG]
    assert box.exec(["ls", f"/etc/systemd/system/{UNITS[SGLANG]}"], check=False).returncode
    ended = serving.destroy()
    assert "warning" not in run.text + ended.text, "sshd refuses every variable here"
    assert serves(box) is None
    assert used_mib(box) == [0] * 8
    left = box.exec(
        ["sh", "-c", "ls -d /etc/cutover /var/lib/cutover /run/cutover /usr/local/*/*cutover* "
         "/etc/systemd/system/*renamed* /etc/systemd/system/*.wants/*renamed* "
         f"/etc/systemd/system/{UNITS[SGLANG]} /etc/systemd/system/{UNITS[VLLM]} "
         "/etc/systemd/system/*.wants/*sglang* 2>/dev/null"],
        check=False,
    ).stdout  # fmt: skip
    assert left == ""
    assert alive(box, canary)


def test_status_on_the_host_tells_what_serves(serving: Stack, box: Host) -> None:
    compiled = "ls /usr/local/lib/cutover/*/cutover_agent/__pycache__/__main__.*.pyc"
    assert box.exec(["sh", "-c", compiled]).stdout
    done = box.exec(["cutover", "status"])
    assert f"{SGLANG} serves at http://127.0.0.1:8000" in done.stdout
    assert "healthy" in done.stdout
    box.exec(["systemctl", "stop", UNITS[SGLANG]])
    done = box.exec(["cutover", "status", "--json"], check=False)
    assert (done.returncode, json.loads(done.stdout)["healthy"]) == (1, False)


def test_another_user_with_sudo_can_do_it_all(stack: Stack, box: Host) -> None:
    stack.configure(hosts={"box": settings(box, user="operator")})
    stack.up()
    assert serves(box) == MODELS[SGLANG]
    stack.configure(active=VLLM)
    stack.up()
    assert serves(box) == MODELS[VLLM]
    stack.destroy()
    assert serves(box) is None


def test_secrets_hide_themselves_and_no_line_around_them(stack: Stack, box: Host) -> None:
    stack.edit(SGLANG, "timeouts:", "secrets: [HF_TOKEN]\n\ntimeouts:")
    stack.configure(secrets={"HF_TOKEN": "first-poison"})
    stack.up()
    stack.configure(secrets={"HF_TOKEN": "second-poison"})
    stack.edit(SGLANG, "  steps: 3", "  steps: 2")
    shown = stack.preview("--diff").text
    assert "--speculative-num-steps 2" in shown
    assert "[secret]" in shown and "poison" not in shown
    before = unit(box, UNITS[SGLANG], "MainPID")
    assert "poison" not in stack.up().text
    assert unit(box, UNITS[SGLANG], "MainPID") != before
    main = unit(box, UNITS[SGLANG], "MainPID")
    assert "HF_TOKEN=second-poison" in box.read(f"/proc/{main}/environ").split("\0")
    assert "poison" not in box.exec(["systemctl", "show", UNITS[SGLANG]]).stdout
    state = next((stack.folder / "state").rglob("test.json")).read_text()
    assert "poison" not in state
