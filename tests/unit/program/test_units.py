"""Whole unit and environment files."""

from __future__ import annotations

import shutil
import subprocess
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutover.catalogue import load_catalogue
from cutover.engines import ENGINES
from cutover.option import option
from cutover.units import render_environment, render_unit
from tests.unit.program import systemd_reference as systemd
from tests.unit.program.samples import deployment
from tests.unit.program.test_quoting import VALUES

GOLDEN = Path(__file__).parent / "golden"
CATALOGUE = load_catalogue(Path(__file__).resolve().parents[3] / "deployments")
ONE_LINE = VALUES.filter(lambda value: "\r" not in value).filter(
    lambda value: all(ord(c) & 0xFFFE != 0xFFFE and not 0xFDD0 <= ord(c) <= 0xFDEF for c in value)
)


def value_of(unit: str, name: str) -> list[str]:
    return [value for key, value in systemd.directives(unit) if key == name]


def changed_lines(before: str, after: str) -> list[str]:
    diff = unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    return [line for line in diff if not line.startswith(("---", "+++", "@@"))]


@pytest.mark.parametrize("name", CATALOGUE)
def test_each_unit_of_the_catalogue_is_known_to_the_letter(name: str) -> None:
    text = render_unit(CATALOGUE[name])
    assert text == (GOLDEN / CATALOGUE[name].unit).read_text()


def test_there_is_no_golden_file_without_a_deployment() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == {one.unit for one in CATALOGUE.values()}


AWKWARD: dict[str, Any] = {
    "json": '{"method": "mtp", "num_speculative_tokens": 2}',
    "apostrophe": """{"p":"it's"}""",
    "braces": "{{ messages }} {% raw %}",
    "percent": "(id=%s) 95% %H",
    "dollar": "$HOME ${X} $$",
    "end": "ends in \\",
    "semicolon": ";",
    "comment": "#x",
    "empty": "",
    "blank": " ",
    "control": "\t\x1b\x7f",
    "text": "größer 漢 \u2028",
    "list": ["a", 1, ";", "#", "\\"],
    "mapping": {"a": [1, "x y"], "b": {"c": None}},
}


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
@pytest.mark.parametrize("name", [*CATALOGUE, "awkward"])
def test_systemd_itself_has_nothing_to_say_about_the_unit(name: str, tmp_path: Path) -> None:
    awkward = deployment(
        "awkward",
        args=AWKWARD,
        env={key.upper(): value for key, value in AWKWARD.items() if isinstance(value, str)},
        checkpoint="/models/a b%i",
        working_directory="/tmp",
        description="95% of 50%H",
        gpus=[1, 2],
    )
    one = {**CATALOGUE, "awkward": awkward}[name]
    program = tmp_path / "python 3%"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    path = tmp_path / one.unit
    path.write_text(render_unit(one.model_copy(update={"python": str(program)})))
    told = subprocess.run(
        ["systemd-analyze", "verify", path], capture_output=True, text=True, check=False
    )
    assert (told.returncode, told.stdout + told.stderr) == (0, "")


@settings(deadline=None)
@given(
    st.dictionaries(st.from_regex(r"[a-z]{1,8}(-[a-z]{1,4})?", fullmatch=True), ONE_LINE),
    st.dictionaries(st.from_regex(r"MY_[A-Z]{1,8}", fullmatch=True), ONE_LINE),
)
def test_a_process_gets_exactly_what_the_deployment_says(
    args: dict[str, str], env: dict[str, str]
) -> None:
    typed = ENGINES["vllm"].refused
    args = {f"my-{name}" if name in typed else name: value for name, value in args.items()}
    unit = render_unit(deployment(args=args, env=env))
    start = ["/opt/vllm/bin/python3", "-m", "vllm.entrypoints.openai.api_server"]
    assert systemd.argv_of(unit) == [
        *start,
        *("--model", "/models/small", "--served-model-name", "small"),
        *("--tensor-parallel-size", "8"),
        *(word for pair in args.items() for word in option(*pair)),
        *("--host", "0.0.0.0", "--port", "8000"),
    ]
    arrived = systemd.environment(unit)
    assert {name: arrived[name] for name in env} == env


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (True, ["--x"]),
        (False, []),
        (None, []),
        (7, ["--x", "7"]),
        (-1, ["--x", "-1"]),
        (0.9, ["--x", "0.9"]),
        ("a b", ["--x", "a b"]),
        ("", ["--x", ""]),
        ("-a", ["--x=-a"]),
        (["a", 2], ["--x", "a", "2"]),
        ([{"a": 1}], ["--x", '{"a":1}']),
        ({"a": {"b": [1, "ü"]}, "c": True}, ["--x", '{"a":{"b":[1,"ü"]},"c":true}']),
    ],
)
def test_an_option_becomes_these_arguments(value: Any, words: list[str]) -> None:
    assert option("x", value) == words


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (
            {"a": 1, "max-num-seqs": 65536},
            {"a": 1, "max-num-seqs": 131072},
            ["-    --max-num-seqs 65536 \\", "+    --max-num-seqs 131072 \\"],
        ),
        ({"a": 1}, {"a": 1, "last": 2}, ["+    --last 2 \\"]),
        ({"a": 1}, {}, ["-    --a 1 \\"]),
    ],
)
def test_a_changed_option_is_one_changed_line(
    before: dict[str, Any], after: dict[str, Any], expected: list[str]
) -> None:
    units = [render_unit(deployment(args=args)) for args in (before, after)]
    assert changed_lines(*units) == expected


def test_a_changed_variable_is_one_changed_line() -> None:
    units = [render_unit(deployment(env={"A": "x", "B": value})) for value in ("1", "2 3")]
    assert changed_lines(*units) == ["-Environment=B=1", '+Environment="B=2 3"']


def test_no_line_is_continued_by_a_backslash_with_a_blank_after_it() -> None:
    for one in (*CATALOGUE.values(), deployment(args=AWKWARD)):
        assert not [line for line in render_unit(one).split("\n") if line != line.rstrip()]


def test_lines_end_in_lf_only() -> None:
    for one in (*CATALOGUE.values(), deployment(args=AWKWARD)):
        assert "\r" not in render_unit(one) + render_environment(one, {})


def test_a_subset_of_the_gpus_is_all_that_the_server_sees() -> None:
    some, every = render_unit(deployment(gpus=[6, 7])), render_unit(deployment())
    assert systemd.environment(some)["CUDA_VISIBLE_DEVICES"] == "6,7"
    assert "CUDA_VISIBLE_DEVICES" not in systemd.environment(every)
    assert "--tensor-parallel-size 2" in some


def test_a_variable_of_the_deployment_wins_over_the_policy_and_is_set_once() -> None:
    unit = render_unit(deployment(env={"PYTHONUNBUFFERED": "0", "PATH": "/only"}))
    assert [value for value in value_of(unit, "Environment") if "PYTHONUN" in value] == [
        "PYTHONUNBUFFERED=0"
    ]
    assert systemd.environment(unit)["PATH"] == "/only"


def test_the_path_has_the_engine_first_and_the_system_behind_it() -> None:
    path = systemd.environment(render_unit(deployment()))["PATH"].split(":")
    assert path[0] == "/opt/vllm/bin"
    assert {"/usr/local/bin", "/usr/bin", "/usr/sbin", "/bin"} <= set(path)


@pytest.mark.parametrize(("load", "stop", "pause"), [(900, 120, 10), (3600, 300, 60), (1, 1, 1)])
def test_a_slow_crash_loop_trips_the_start_limit(load: int, stop: int, pause: int) -> None:
    unit = render_unit(
        deployment(timeouts={"load": load, "stop": stop}, restart={"seconds": pause})
    )
    before_service = unit.partition("[Service]")[0]
    (interval,) = value_of(before_service, "StartLimitIntervalSec")
    (burst,) = value_of(before_service, "StartLimitBurst")
    assert int(interval) > int(burst) * (load + stop + pause)


def test_the_environment_file_is_named_bare_and_has_to_exist() -> None:
    assert value_of(render_unit(deployment()), "EnvironmentFile") == ["/etc/cutover/small.env"]


def test_secrets_are_in_the_environment_file_only() -> None:
    one = deployment(secrets=["TOKEN", "OTHER"])
    text = render_environment(one, {"TOKEN": 'a"b', "OTHER": "$x", "NOT_ASKED_FOR": "y"})
    assert systemd.environment_file(text) == {"TOKEN": 'a"b', "OTHER": "$x"}
    assert "TOKEN" not in render_unit(one)


def test_without_secrets_the_environment_file_is_a_comment() -> None:
    assert render_environment(deployment(), {}) == (
        "# Written by cutover: no secrets of the deployment small.\n"
    )
