"""What a person at the Pulumi command line sees of a plugin."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from sandbox import Host

pytestmark = [pytest.mark.practice_host, pytest.mark.xdist_group("contract")]

PROGRAM = """
import os
import pulumi
from pulumi_command import remote

connection = remote.ConnectionArgs(
    host=os.environ["HOST"], user="root", private_key=open(os.environ["KEY"]).read()
)

def command(name, create, **more):
    options = {"connection": connection, "add_previous_output_in_env": False}
    return remote.Command(name, create=create, **options, **more)

"""


class Project(NamedTuple):
    """A Pulumi project of one stack."""

    folder: Path
    environment: dict[str, str]

    def write(self, program: str) -> None:
        (self.folder / "__main__.py").write_text(PROGRAM + program)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["pulumi", *arguments, "--non-interactive", "--color=never"],
            cwd=self.folder,
            env=self.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def pulumi(self, *arguments: str) -> tuple[int, str]:
        """The exit code and all output."""
        process = self.start(*arguments)
        text = process.communicate(timeout=60)[0]
        return process.returncode, text


@pytest.fixture
def project(executable: Path, host: Host, tmp_path: Path) -> Iterator[Project]:
    assert shutil.which("pulumi"), 'no pulumi on PATH: run `eval "$(make -s env)"` first'
    plugins = tmp_path / "home" / "plugins" / "resource-command-v1.2.1"
    plugins.mkdir(parents=True)
    (plugins / "pulumi-resource-command").symlink_to(executable)
    (tmp_path / "state").mkdir()
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text("name: contract\nruntime: python\n")
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PULUMI_HOME": str(tmp_path / "home"),
        "PULUMI_BACKEND_URL": f"file://{tmp_path}/state",
        "PULUMI_CONFIG_PASSPHRASE": "practice",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "HOST": host.address,
        "KEY": str(host.key_path),
    }
    environment.pop("SSH_AUTH_SOCK", None)
    project = Project(folder, environment)
    project.write("")
    assert project.pulumi("stack", "init", "one")[0] == 0
    yield project


def test_lines_show_while_a_command_runs_and_only_the_changed_lines_in_a_preview(
    project: Project, executable: Path
) -> None:
    program = """
a = command("a", "echo working; cat", stdin="one\\n{}\\nthree\\n")
command("secret", "cat > /dev/null; echo seen", stdin=pulumi.Output.secret("hush-{}"))
command("dependent", a.stdout.apply(lambda text: f"echo {{len(text)}}"))
command("again", "true", triggers=["{}"])
"""
    project.write(program.format(*["first"] * 3))
    code, shown = project.pulumi("up", "--yes", "--skip-preview")
    assert code == 0, shown
    assert re.search(r"command:remote:Command a creating \(\d+s\) working", shown), shown
    assert ("stand-in for the pulumi-command" in shown) == ("standin" in str(executable))

    project.write(program.format(*["second"] * 3))
    code, shown = project.pulumi("preview", "--diff")
    assert code == 0, shown
    assert "            one\n          - first\n          + second\n            three\n" in shown
    assert "~ stdin: [secret] => [secret]" in shown
    assert '~ create: "echo 23" => [unknown]' in shown
    assert "+-command:remote:Command: (replace)" in shown
    assert "hush" not in shown

    project.write(program.format(*["first"] * 3))
    code, shown = project.pulumi("preview", "--expect-no-changes")
    assert code == 0, shown


def test_a_failure_shows_script_and_output_and_leaves_the_others_in_state(
    project: Project,
) -> None:
    project.write(
        'a = command("a", "true")\n'
        'command("b", "cat; exit 7", stdin="what was read\\n", logging="none",'
        " opts=pulumi.ResourceOptions(depends_on=[a]))\n"
    )
    code, shown = project.pulumi("up", "--yes", "--skip-preview")
    assert code != 0
    assert 'error: Process exited with status 7: running "cat; exit 7":\n    what was read' in shown
    assert '"create": "true"' in project.pulumi("stack", "export")[1]


def test_an_interrupt_lets_the_running_command_finish_and_keeps_its_result(
    project: Project, host: Host
) -> None:
    script = "touch /started; while [ ! -e /go ]; do sleep 0.1; done; echo went"
    project.write(f'command("slow", "{script}")')
    host.exec(["rm", "-f", "/started", "/go"])
    process = project.start("up", "--yes", "--skip-preview")
    assert process.stdout is not None
    host.exec(["sh", "-c", "while [ ! -e /started ]; do sleep 0.1; done"])
    process.send_signal(signal.SIGINT)
    for line in process.stdout:
        if "cancelling" in line:
            break
    host.exec(["touch", "/go"])
    process.communicate(timeout=60)
    assert process.returncode != 0
    assert '"stdout": "went"' in project.pulumi("stack", "export")[1]
