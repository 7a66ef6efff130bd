"""Faults of units that others have reported: each with the input that would show it here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cutover.advice import advice
from cutover.catalogue import load_catalogue
from cutover.errors import ConfigError
from cutover.settings import load_settings
from cutover.units import render_environment, render_unit
from tests.unit.program import systemd_reference as systemd
from tests.unit.program.samples import deployment, fields, settings
from tests.unit.program.test_deployment import refusal
from tests.unit.program.test_units import value_of


def argument(unit: str, name: str) -> str:
    argv = systemd.argv_of(unit)
    return argv[argv.index(f"--{name}") + 1]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FILTER", "(id=%s)"),
        ("LABEL", "95% hit rate, box %H"),
        ("DB", "pg://h/d?o=-c role=app"),
        ("BRACES", "{{ messages }}"),
        ("JSON", '{"max_new_tokens":256}'),
    ],
)
def test_a_variable_arrives_whole_in_the_unit_and_in_the_file_of_secrets(
    name: str, value: str
) -> None:
    assert systemd.environment(render_unit(deployment(env={name: value})))[name] == value
    text = render_environment(deployment(secrets=[name]), {name: value})
    assert systemd.environment_file(text) == {name: value}


@pytest.mark.parametrize(
    "value",
    [
        '{"method": "mtp", "num_speculative_tokens": 2}',
        """{"p":"it's"}""",
        '{"max_new_tokens":256}',
        "{{ messages }}",
        "/models/my tpl.jinja",
        ";",
        "ends in a backslash\\",
    ],
)
def test_an_option_is_one_element_of_the_command(value: str) -> None:
    unit = render_unit(deployment(args={"x-option": value, "behind": "it"}))
    assert argument(unit, "x-option") == value
    assert argument(unit, "behind") == "it", "nothing behind it is lost"


def test_a_line_break_arrives_where_the_file_can_express_it_and_is_refused_where_not() -> None:
    unit = render_unit(deployment(env={"A": "x\ny"}, args={"x-option": "x\ny"}))
    assert systemd.environment(unit)["A"] == "x\ny"
    assert argument(unit, "x-option") == "x\ny"
    for changes in ({"description": "x\ny"}, {"additions": {"Unit": {"Documentation": "x\ny"}}}):
        assert refusal(fields(**changes)).endswith("holds a line break: write it on one line")
    text = render_environment(deployment(secrets=["A"]), {"A": "x\ny"})
    assert systemd.environment_file(text) == {"A": "x\ny"}
    assert load_settings(settings(secrets={"A": "x\ny"}), "f").secrets == {"A": "x\ny"}
    with pytest.raises(ConfigError, match=r"secrets\.VLLM_API_KEY: holds a line break") as refused:
        load_settings(settings(secrets={"VLLM_API_KEY": "x\ns3cret"}), "f")
    assert "s3cret" not in str(refused.value)


def test_one_text_with_all_options_is_rejected() -> None:
    given = '--speculative-config {"method": "mtp"} --chat-template /models/my tpl.jinja'
    assert refusal(fields(args=given)).startswith("d: args: this value is not allowed")


@pytest.mark.parametrize("directory", ["~/x", "x", "/a/../b"])
def test_a_working_directory_that_makes_the_unit_unloadable_is_refused(directory: str) -> None:
    assert refusal(fields(working_directory=directory)).startswith("d: working_directory: ")


def test_secrets_arrive_without_quotes_and_their_file_is_named_bare_and_mandatory() -> None:
    one = deployment(secrets=["HF_TOKEN"])
    assert systemd.environment_file(render_environment(one, {"HF_TOKEN": "abc"})) == {
        "HF_TOKEN": "abc"
    }
    assert value_of(render_unit(one), "EnvironmentFile") == ["/etc/cutover/small.env"]


def test_a_key_is_neither_in_the_unit_nor_on_the_command_line() -> None:
    unit = render_unit(deployment(secrets=["VLLM_API_KEY"]))
    assert "VLLM_API_KEY" not in unit
    assert "would show the key" in refusal(fields(args={"api-key": "s3cret"}))
    assert "s3cret" not in refusal(fields(args={"api-key": "s3cret"}))


def test_carriage_returns_reach_no_file(tmp_path: Path) -> None:
    folder = tmp_path / "deployments"
    folder.mkdir()
    text = (
        "description: A\r\nunit: a.service\r\nengine: vllm\r\npython: /p\r\n"
        "checkpoint: /m\r\nserved_names: [a]\r\nargs:\r\n  x: y\r\n"
    )
    (folder / "a.yaml").write_bytes(text.encode())
    assert "\r" not in render_unit(load_catalogue(folder)["a"])
    (folder / "a.yaml").write_bytes(text.replace("x: y", 'x: "y\\r"').encode())
    with pytest.raises(ConfigError, match=r"args\.x: holds a carriage return"):
        load_catalogue(folder)


def test_limits_are_infinity_and_a_number() -> None:
    unit = render_unit(deployment(limits={"memlock": "unlimited", "nofile": "1M"}))
    assert value_of(unit, "LimitMEMLOCK") == ["infinity"]
    assert value_of(unit, "LimitNOFILE") == ["1048576"]


def test_the_start_limit_follows_the_load_and_no_addition_shortens_it() -> None:
    assert value_of(render_unit(deployment(timeouts={"load": 1500})), "TimeoutStartSec") == ["1500"]
    told = refusal(fields(additions={"Service": {"TimeoutStartSec": "90"}}))
    assert told.endswith("is written from timeouts.load: set that instead")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Type", "notify"),
        ("StartLimitIntervalSec", "0"),
        ("TimeoutStopSec", "infinity"),
        ("KillMode", "process"),
        ("KillMode", "none"),
        ("PrivateDevices", "yes"),
        ("DeviceAllow", "char-nvidia-frontend rw"),
    ],
)
def test_an_addition_that_was_reported_to_break_is_refused(name: str, value: str) -> None:
    told = refusal(fields(additions={"Service": {name: value}}))
    assert told.startswith(f"d: additions.Service.{name}: ")


def test_a_start_limit_stands_where_systemd_reads_it() -> None:
    head, _, service = render_unit(deployment()).partition("[Service]")
    assert "StartLimitIntervalSec=" in head and "StartLimit" not in service


def test_the_drain_time_is_below_the_stop_limit() -> None:
    args = {"shutdown-timeout": 120}
    assert "leaves no time" in refusal(fields(args=args, timeouts={"stop": 30}))
    assert value_of(render_unit(deployment(args=args)), "TimeoutStopSec") == ["150"]


@pytest.mark.parametrize("words", [["conda", "run", "-n", "vllm", "vllm", "serve"], ["vllm"]])
def test_a_command_that_is_looked_up_is_refused(words: list[str]) -> None:
    values: dict[str, Any] = fields(engine="command", command=words, python=None)
    assert "give the program's absolute path" in refusal(values)


def test_a_wrapper_is_warned_about() -> None:
    one = deployment(engine="command", command=["/opt/conda/bin/conda", "run", "x"], python=None)
    assert any("stop signal" in sentence for sentence in advice(one))


def test_the_generated_path_keeps_the_system_and_a_given_one_is_warned_about() -> None:
    path = systemd.environment(render_unit(deployment()))["PATH"]
    assert {"/usr/bin", "/bin", "/usr/sbin"} <= set(path.split(":"))
    for given in ("/opt/venv/bin", "/opt/venv/bin:$PATH"):
        one = deployment(env={"PATH": given})
        assert systemd.environment(render_unit(one))["PATH"] == given, "never edited"
        assert any("env.PATH" in sentence for sentence in advice(one))


@pytest.mark.parametrize("unit", ["a-b/c.service", "a/b-c.service", "m@.service", "m@a-b.service"])
def test_names_that_systemd_would_unescape_are_refused(unit: str) -> None:
    assert refusal(fields(unit=unit)).startswith("d: unit: ")


def test_the_driver_is_up_before_the_server() -> None:
    after = value_of(render_unit(deployment()), "After")[0].split()
    assert {"nvidia-persistenced.service", "nvidia-fabricmanager.service"} <= set(after)
