"""What changes around a healthy model never restarts it; what broke off is finished.

Every row twice: with facts, and without.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
from tests.faults.inject import wait

UNCHANGED = {"unchanged": 19}
OLDER, NEWER = "1.2.1", "1.2.2"
COMMAND = "resource-command-v{}"


@dataclass
class Bench:
    """One host for all rows; each takes it as the one before has left it."""

    stack: Stack
    box: Host
    name: str = "box"
    """Of the host, in the config."""
    how: dict[str, Any] = field(default_factory=dict)
    """How to log in, where that has changed."""
    active: str = SGLANG
    sdk: str = OLDER

    @property
    def other(self) -> str:
        return VLLM if self.active == SGLANG else SGLANG

    @property
    def pid(self) -> str:
        """Of the model that shall serve."""
        return unit(self.box, UNITS[self.active], "MainPID")

    def configure(self) -> None:
        hosts = {self.name: settings(self.box, **self.how)}
        self.stack.configure(active=self.active, hosts=hosts)

    def misbehave(self, **how: object) -> None:
        models = {"models": {MODELS[self.other]: how}}
        self.box.write("/etc/practice/engine.json", json.dumps(models))

    def healthy(self) -> bool:
        """Whether the right model answers, and starts at boot, and no other."""
        right = MODELS[self.active], {UNITS[self.active]}
        return (serves(self.box), enabled(self.box)) == right


def shared_by(facts: bool) -> Any:
    name = f"facts {'on' if facts else 'off'}"
    return pytest.param(facts, id=name, marks=pytest.mark.xdist_group(f"convergence, {name}"))


@pytest.fixture(scope="module", params=[shared_by(True), shared_by(False)])
def bench(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Bench]:
    with start("box", state=tmp_path_factory.mktemp("hosts")) as box:
        made = Bench(Stack(tmp_path_factory.mktemp("stack")), box)
        made.stack.configure(facts=request.param)
        made.configure()
        made.stack.up()
        yield made


def rotated_key(bench: Bench) -> None:
    key = bench.stack.folder / "rotated"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    bench.box.write("/etc/ssh/authorized_keys", key.with_suffix(".pub").read_text())
    bench.how["key_file"] = str(key)


def another_user(bench: Bench) -> None:
    bench.how["user"] = "operator"


def refreshed_state(bench: Bench) -> None:
    bench.stack._run("refresh", "--yes", "--skip-preview", "--stack", bench.stack.name)


def newer_agent(bench: Bench) -> None:
    """Another wire version, too: what the host remembers was written by the one before."""
    file, version = "agent/cutover_agent/order.py", "WIRE_VERSION = "
    bench.stack.change_code(file, f"{version}1", f"{version}2")


def newer_sdk_and_plugin(bench: Bench) -> None:
    stack = bench.stack
    about = stack.folder / f"pulumi_command-{NEWER}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Name: pulumi_command\nVersion: {NEWER}\n")
    plugin = Path(stack.env["PULUMI_HOME"]) / "plugins" / COMMAND.format(OLDER)
    home = stack.folder / "home"
    for version in (OLDER, NEWER):
        shutil.copytree(plugin, home / "plugins" / COMMAND.format(version), symlinks=True)
    stack.env["PULUMI_HOME"] = str(home)
    bench.sdk = NEWER


def renamed_component_types(bench: Bench) -> None:
    renamed = "pulumi.ResourceOptions(aliases=[pulumi.Alias(type_='{}')]{})"
    host, deployment = "cutover:index:GpuHost", "cutover:index:ModelDeployment"
    for file, type_, old, new in (
        (
            "gpu_host",
            host,
            "pulumi.ResourceOptions(providers=[provider])",
            renamed.format(host, ", providers=[provider]"),
        ),
        (
            "model_deployment",
            deployment,
            "pulumi.ResourceOptions(parent=parent)",
            renamed.format(deployment, ", parent=parent"),
        ),
    ):
        bench.stack.change_code(f"components/{file}.py", old, new)
        bench.stack.change_code(f"components/{file}.py", f'"{type_}"', f'"{type_}OfToday"')


def renamed_host(bench: Bench) -> None:
    bench.name = "gpu-box"


ROWS = [
    [rotated_key, another_user],
    [refreshed_state],
    [newer_agent],
    [newer_sdk_and_plugin, renamed_component_types],
    [renamed_host],
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: ", ".join(one.__name__ for one in row))
def test_a_change_around_a_healthy_model_leaves_its_process_alone(
    row: list[Callable[[Bench], None]], bench: Bench
) -> None:
    before = bench.pid
    for change in row:
        change(bench)
    bench.configure()
    bench.stack.up()
    assert (bench.pid, bench.healthy()) == (before, True)
    assert bench.stack.preview("--expect-no-changes").counts == UNCHANGED
    providers = [r for r in bench.stack.state() if r["type"] == "pulumi:providers:command"]
    assert [provider["inputs"]["version"] for provider in providers] == [bench.sdk]


def test_an_up_that_was_interrupted_is_finished_by_the_next(bench: Bench) -> None:
    box, stack = bench.box, bench.stack
    box.write("/etc/practice/engine.json", json.dumps({"load_seconds": 15}))
    bench.active = bench.other
    bench.configure()
    words = ["up", "--yes", "--skip-preview", "--non-interactive", "--stack", stack.name]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(
        ["pulumi", *words], cwd=stack.folder, env=stack.env, stdout=quiet, stderr=quiet
    ) as client:
        status = ["cutover", "status"]
        wait(lambda: " in ready" in box.exec(status, check=False).stdout, 60, "it loads")
        client.send_signal(signal.SIGINT)
    before = bench.pid
    stack.up()
    assert (bench.pid, bench.healthy()) == (before, True)
    assert stack.preview("--expect-no-changes").counts == UNCHANGED


def test_a_failed_up_is_tried_again_by_the_same_config_and_left_alone_by_the_reverted_one(
    bench: Bench,
) -> None:
    before = bench.pid
    bench.misbehave(crash="loading")
    for _ in range(2):
        bench.stack.configure(active=bench.other)
        run = bench.stack.up(fails=True)
        assert f"{bench.active} serves again, verified" in run.text
        assert bench.pid != before, "it was stopped, and started again"
        before = bench.pid
    bench.configure()
    bench.stack.up()
    assert (bench.pid, bench.healthy()) == (before, True)
    assert bench.stack.preview("--expect-no-changes").counts == UNCHANGED
    bench.misbehave()


def test_a_renamed_deployment_serves_and_leaves_nothing_of_the_old_name(bench: Bench) -> None:
    folder = bench.stack.folder / "deployments"
    (folder / f"{bench.active}.yaml").rename(folder / "renamed.yaml")
    bench.stack.configure(active="renamed")
    bench.stack.up()
    assert bench.healthy()
    left = bench.box.exec(["ls", "/etc/cutover"]).stdout.split()
    assert left == sorted([f"{bench.other}.env", "renamed.env"])
    assert bench.stack.preview("--expect-no-changes").counts == UNCHANGED
    (folder / "renamed.yaml").unlink()
    old, bench.active = bench.active, bench.other
    bench.configure()
    bench.stack.up()
    assert bench.healthy(), "what was active, and is declared no more, gives way"
    assert bench.box.exec(["ls", "/etc/cutover"]).stdout.split() == [f"{bench.active}.env"]
    gone = ["ls", f"/etc/systemd/system/{UNITS[old]}"]
    assert bench.box.exec(gone, check=False).returncode


def test_destroy_may_leave_the_serving_unit_running_without_the_agent(bench: Bench) -> None:
    before, box = bench.pid, bench.box
    bench.how["on_destroy"] = "keep"
    bench.configure()
    bench.stack.up()
    bench.stack.destroy()
    assert (bench.pid, bench.healthy()) == (before, True)
    left = box.exec(["sh", "-c", "ls -d /var/lib/cutover /run/cutover /usr/local/bin/cutover "
                     "/etc/systemd/system/cutover* 2>/dev/null"], check=False).stdout  # fmt: skip
    assert left == ""
    box.power_off()
    box.boot()
    wait(lambda: serves(box) == MODELS[bench.active], 60, "it starts at boot without the agent")
