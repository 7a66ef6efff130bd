from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from toolchain.exports import environment, export_lines, machine_path
from toolchain.places import Places, places

HERE = Places(project=Path("/src/cut over"), cache=Path("/home/person/.cache/cutover"))


@pytest.mark.parametrize(
    "value", ["plain", "two words", "it's", '"$HOME" `id` $(id) \\', "line\nbreak", "", "*"]
)
def test_a_shell_reads_back_every_value_as_it_was(value: str) -> None:
    script = export_lines({"BEFORE": "x", "VALUE": value}) + '\nprintf %s "$VALUE"'
    shell = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert shell.stdout == value


def test_our_tools_come_before_those_of_the_machine() -> None:
    variables = environment(HERE, [HERE.venv / "bin", HERE.cache / "pulumi"], "/usr/bin:/bin")
    assert variables["PATH"] == (
        "/src/cut over/.venv/bin:/home/person/.cache/cutover/pulumi:/usr/bin:/bin"
    )


def test_the_path_does_not_grow_when_the_lines_are_evaluated_again() -> None:
    once = environment(HERE, [HERE.venv / "bin", HERE.cache / "pulumi"], "/usr/bin:/bin")
    assert machine_path(once["PATH"], HERE) == "/usr/bin:/bin"


def test_pulumi_keeps_its_state_and_plugins_in_the_checkout() -> None:
    variables = environment(HERE, [], "/bin")
    assert Path(variables["PULUMI_HOME"]).is_relative_to(HERE.project)
    assert variables["PULUMI_BACKEND_URL"].startswith(f"file://{HERE.project}/")


@pytest.mark.parametrize(
    ("env", "cache"),
    [
        ({"CUTOVER_CACHE": "/a", "XDG_CACHE_HOME": "/b"}, Path("/a")),
        ({"XDG_CACHE_HOME": "/b"}, Path("/b/cutover")),
        ({"CUTOVER_CACHE": "", "XDG_CACHE_HOME": ""}, Path.home() / ".cache" / "cutover"),
    ],
)
def test_the_cache_is_where_the_environment_wants_it(env: dict[str, str], cache: Path) -> None:
    assert places(Path("/src"), env).cache == cache
