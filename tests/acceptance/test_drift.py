"""Each kind of drift: changed by hand, shown by a preview, repaired by `up`, then gone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from sandbox import Host, start
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

FOLDER = "/etc/systemd/system"


@dataclass(frozen=True)
class Drift:
    """One way to change a host by hand."""

    change: Callable[[Host], None]
    on: str
    """The resource that shows it."""
    says: str
    same_process: bool = True
    """Whether the model's process is to be the same after the repair."""


def edit(deployment: str, old: str, new: str, restart: bool = False) -> Callable[[Host], None]:
    def change(box: Host) -> None:
        path = f"{FOLDER}/{UNITS[deployment]}"
        text = box.read(path)
        assert old in text
        box.write(path, text.replace(old, new))
        if restart:
            box.exec(["systemctl", "daemon-reload"])
            box.exec(["systemctl", "restart", UNITS[deployment]])

    return change


def drop_in(deployment: str, text: str) -> Callable[[Host], None]:
    def change(box: Host) -> None:
        folder = f"{FOLDER}/{UNITS[deployment]}.d"
        box.exec(["mkdir", "-p", folder])
        box.write(f"{folder}/override.conf", text)
        box.exec(["systemctl", "daemon-reload"])

    return change


def run(*commands: str) -> Callable[[Host], None]:
    def change(box: Host) -> None:
        for command in commands:
            box.exec(["sh", "-c", command])

    return change


KINDS = {
    "unit of the serving model edited": Drift(
        edit(SGLANG, "--speculative-num-steps 3", "--speculative-num-steps 1"),
        f"box-{SGLANG}-unit",
        f"{UNITS[SGLANG]} was edited on the host: - --speculative-num-steps 3 + --speculative-num-",
    ),
    "unit of an inactive deployment edited": Drift(
        edit(VLLM, "RestartSec=", "# by hand\nRestartSec="),
        f"box-{VLLM}-unit",
        f"{UNITS[VLLM]} was edited on the host",
    ),
    "unit removed": Drift(
        run(f"rm {FOLDER}/{UNITS[VLLM]}"),
        f"box-{VLLM}-unit",
        f"{UNITS[VLLM]} was removed from the host",
    ),
    "environment edited": Drift(
        run(f"echo NCCL_DEBUG=INFO >> /etc/cutover/{SGLANG}.env"),
        f"box-{SGLANG}-env",
        f"/etc/cutover/{SGLANG}.env was edited on the host: `pulumi up` repairs it",
    ),
    "drop-in added to the serving unit": Drift(
        drop_in(SGLANG, "[Service]\nEnvironment=API_TOKEN=poison\nNice=5\n"),
        f"box-{SGLANG}-unit",
        "override.conf: [Service] Environment=API_TOKEN=[secret] Nice=5",
    ),
    "other unit enabled": Drift(
        run(f"systemctl enable {UNITS[VLLM]}"),
        f"box-{VLLM}-unit",
        f"{UNITS[VLLM]} is enabled, though {SGLANG} is what starts at boot",
    ),
    "serving unit disabled": Drift(
        run(f"systemctl disable {UNITS[SGLANG]}"),
        f"box-{SGLANG}-unit",
        f"{UNITS[SGLANG]} is not enabled",
    ),
    "agent removed": Drift(
        run("rm -r /usr/local/bin/cutover /usr/local/lib/cutover"),
        "box-agent",
        "the agent on the host is not the one that was installed",
    ),
    "what finishes a cutover switched off": Drift(
        run("systemctl disable cutover-recover.service"),
        "box-agent",
        "cutover-recover.service is not as it was installed: nothing finishes what breaks off",
    ),
    "unit dead": Drift(
        run(f"systemctl stop {UNITS[SGLANG]}"),
        "box-stage",
        f"{UNITS[SGLANG]} is inactive: {SGLANG} does not serve",
        same_process=False,
    ),
    "wrong model serves": Drift(
        run(f"systemctl stop {UNITS[SGLANG]}", f"systemctl start {UNITS[VLLM]}"),
        "box-stage",
        f"{UNITS[VLLM]} runs, though it shall not",
        same_process=False,
    ),
    "unit edited and started with that": Drift(
        edit(SGLANG, "--speculative-num-steps 3", "--speculative-num-steps 1", restart=True),
        f"box-{SGLANG}-unit",
        f"{UNITS[SGLANG]} was started with what had been edited on the host",
        same_process=False,
    ),
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stack, Host]]:
    """One serving host for all kinds of drift: each of them ends as it began."""
    with start("box", state=tmp_path_factory.mktemp("hosts")) as box:
        stack = Stack(tmp_path_factory.mktemp("stack"))
        stack.configure(active=SGLANG, hosts={"box": settings(box)})
        stack.up()
        yield stack, box


@pytest.mark.parametrize("drift", KINDS.values(), ids=KINDS)
def test_drift_is_shown_repaired_and_gone(drift: Drift, shared: tuple[Stack, Host]) -> None:
    serving, box = shared
    drift.change(box)
    process = unit(box, UNITS[SGLANG], "MainPID")
    shown = serving.preview("--expect-no-changes", fails=True).text
    assert drift.says in shown
    assert f" {drift.on} update" in shown
    assert "poison" not in shown
    serving.up()
    assert serves(box) == MODELS[SGLANG]
    assert enabled(box) == {UNITS[SGLANG]}
    same = unit(box, UNITS[SGLANG], "MainPID") == process
    assert same == drift.same_process
    assert serving.preview("--expect-no-changes").counts == {"unchanged": 19}
    assert "--speculative-num-steps 3" in unit(box, UNITS[SGLANG], "ExecStart")


def test_what_was_edited_by_hand_is_saved_before_it_is_overwritten(
    serving: Stack, box: Host
) -> None:
    edit(VLLM, "RestartSec=", "# by hand\nRestartSec=")(box)
    drop_in(VLLM, "[Service]\nNice=5\n")(box)
    run(f"printf 'NCCL_DEBUG=INFO\\n\\377\\n' >> /etc/cutover/{VLLM}.env")(box)
    gpus = box.exec(["cutover", "log"]).stdout
    assert "removed, saved as /var/lib/cutover/saved/" in serving.up().text
    assert box.exec(["cutover", "log"]).stdout == gpus, "no transaction ran"
    saved = "/var/lib/cutover/saved"
    names = box.exec(["ls", saved]).stdout.split()
    assert [name.rpartition(".")[0] for name in names] == [
        f"{VLLM}.env",
        UNITS[VLLM],
        f"{UNITS[VLLM]}.override.conf",
    ]
    assert box.exec(["grep", "-l", "# by hand", "-r", saved]).stdout.count("\n") == 1
    assert "600 root" in box.exec(["sh", "-c", f"stat -c '%a %U' {saved}/*"]).stdout


def test_drift_shows_again_after_a_repair_that_failed(serving: Stack, box: Host) -> None:
    run(f"systemctl stop {UNITS[SGLANG]}")(box)
    broken = {"models": {MODELS[SGLANG]: {"crash": "loading"}}}
    box.write("/etc/practice/engine.json", json.dumps(broken))
    serving.up(fails=True)
    assert serves(box) is None
    assert "box-stage update" in serving.preview("--expect-no-changes", fails=True).text
    box.write("/etc/practice/engine.json", "{}")
    serving.up()
    assert serves(box) == MODELS[SGLANG]
    serving.preview("--expect-no-changes")


def settles_without_a_restart(stack: Stack, box: Host, service: str) -> None:
    """Command lines that could not be kept up without facts show once, and touch nothing."""
    process = unit(box, service, "MainPID")
    stack.configure(facts=True)
    stack.up()
    assert unit(box, service, "MainPID") == process
    stack.preview("--expect-no-changes")


def test_with_facts_switched_off_a_repaired_host_shows_no_false_diff_and_changes_still_show(
    serving: Stack, box: Host
) -> None:
    edit(SGLANG, "--speculative-num-steps 3", "--speculative-num-steps 1")(box)
    serving.up()
    serving.configure(facts=False)
    serving.preview("--expect-no-changes")
    serving.edit(VLLM, "enable-auto-tool-choice: true", "enable-auto-tool-choice: false")
    serving.up()
    assert "--enable-auto-tool-choice" not in box.read(f"{FOLDER}/{UNITS[VLLM]}")
    serving.configure(active=VLLM)
    serving.up()
    assert serves(box) == MODELS[VLLM]
    settles_without_a_restart(serving, box, UNITS[VLLM])


def test_an_agent_of_a_new_version_reaches_a_host_that_could_not_be_asked(
    serving: Stack, box: Host
) -> None:
    before = box.exec(["readlink", "-f", "/usr/local/bin/cutover"]).stdout
    process = unit(box, UNITS[SGLANG], "MainPID")
    serving.change_agent()
    serving.configure(facts=False)
    serving.up()
    assert box.exec(["readlink", "-f", "/usr/local/bin/cutover"]).stdout != before
    assert unit(box, UNITS[SGLANG], "MainPID") == process
    settles_without_a_restart(serving, box, UNITS[SGLANG])


def test_a_host_that_was_installed_anew_is_seen_and_set_up_again(serving: Stack, box: Host) -> None:
    run(
        f"systemctl disable --now {UNITS[SGLANG]}",
        "rm -r /usr/local/bin/cutover /usr/local/lib/cutover /var/lib/cutover /etc/cutover",
        f"rm {FOLDER}/{UNITS[SGLANG]} {FOLDER}/{UNITS[VLLM]}",
        "systemctl daemon-reload",
    )(box)
    shown = serving.preview("--expect-no-changes", fails=True)
    assert "nothing of ours serves" in shown.text
    serving.up()
    assert serves(box) == MODELS[SGLANG]
    assert enabled(box) == {UNITS[SGLANG]}
    serving.preview("--expect-no-changes")
