"""What a plugin makes of a resource's inputs, without any host."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.client import UNKNOWN, Plugin, secret

CONNECTION = secret({"host": "gpu.invalid", "user": "root", "port": 22})
INPUTS = {
    "connection": CONNECTION,
    "create": "cat",
    "stdin": "one\ntwo\n",
    "environment": {"A": "1"},
    "triggers": [1, {"a": [1, 2]}],
}
STATE = {**INPUTS, "stdout": "before", "stderr": "warned"}


def test_a_connection_gets_its_defaults_and_becomes_secret(plugin: Plugin) -> None:
    proxy = {"host": "bastion.invalid", "privateKey": "key"}
    given = {"host": "gpu.invalid", "password": "word", "proxy": proxy}
    defaults = {"user": "root", "port": 22, "dialErrorLimit": 10, "perDialTimeout": 15}
    inputs, failures = plugin.check({"connection": given})
    assert failures == []
    assert inputs == {
        "connection": secret(
            {
                **defaults,
                **given,
                "password": secret("word"),
                "proxy": {**defaults, **proxy, "privateKey": secret("key")},
            }
        )
    }


def test_secrets_and_unknowns_among_the_inputs_stay_what_they_are(plugin: Plugin) -> None:
    given = {
        "connection": CONNECTION,
        "stdin": secret("hush"),
        "create": UNKNOWN,
        "environment": UNKNOWN,
        "triggers": [secret("a"), 1],
    }
    inputs, failures = plugin.check(given)
    assert failures == []
    assert inputs | {"connection": None} == given | {"connection": None}


@pytest.mark.parametrize(
    ("inputs", "field", "reason"),
    [
        ({}, "connection", "Missing required field 'connection'"),
        ({"connection": {}}, "connection", "Missing required field 'host'"),
        ({"connection": CONNECTION, "colour": "red"}, "colour", "Unrecognized field 'colour'"),
        ({"connection": {"host": "h", "zip": 1}}, "connection", "Unrecognized field 'zip'"),
        ({"connection": CONNECTION, "stdin": 5}, "stdin", "must be a 'string'; got 'float64'"),
        ({"connection": {"host": "h", "port": "x"}}, "connection", "must be a 'float64'"),
    ],
)
def test_wrong_inputs_are_named(
    plugin: Plugin, inputs: dict[str, Any], field: str, reason: str
) -> None:
    [(found, text)] = plugin.check(inputs)[1]
    assert found == field
    assert reason in text


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, {}),
        ({"stdin": "other"}, {"stdin": "UPDATE"}),
        ({"create": "tac"}, {"create": "UPDATE"}),
        ({"update": "tac"}, {"update": "ADD"}),
        ({"delete": "rm"}, {"delete": "ADD"}),
        ({"logging": "none"}, {"logging": "ADD"}),
        ({"connection": secret({"host": "other"})}, {"connection": "UPDATE"}),
        ({"stdin": secret("one\ntwo\n")}, {"stdin": "UPDATE"}),
        ({"stdin": UNKNOWN}, {"stdin": "UPDATE"}),
        ({"stdin": None}, {"stdin": "DELETE"}),
        (
            {"environment": {"A": "2", "B-C": "3"}},
            {"environment.A": "UPDATE", 'environment["B-C"]': "ADD"},
        ),
        ({"triggers": None}, {"triggers": "DELETE_REPLACE"}),
        # A changed element becomes a replacement by the SDK's own `replace_on_changes`.
        (
            {"triggers": [2, {"a": [1]}, 3]},
            {"triggers[0]": "UPDATE", "triggers[1].a[1]": "DELETE", "triggers[2]": "ADD"},
        ),
        ({"version": "9", "__internal": "x"}, {}),
    ],
)
def test_a_difference_is_found_at_its_path(
    plugin: Plugin, change: dict[str, Any], expected: dict[str, str]
) -> None:
    changed = {key: value for key, value in (INPUTS | change).items() if value is not None}
    assert plugin.diff(INPUTS, changed) == expected


def test_a_previewed_creation_does_not_know_its_output(plugin: Plugin) -> None:
    inputs = INPUTS | {"stdin": secret("hush")}
    assert plugin.create(inputs, preview=True) == inputs | {"stdout": UNKNOWN, "stderr": UNKNOWN}


@pytest.mark.parametrize(
    ("change", "known"),
    [
        ({}, True),
        ({"stdin": "other"}, False),
        ({"stdin": None}, False),
        ({"stdin": secret("one\ntwo\n")}, False),
        ({"delete": UNKNOWN}, False),
        ({"delete": "an input that was not there before"}, True),
    ],
)
def test_a_previewed_update_knows_its_output_only_if_nothing_runs(
    plugin: Plugin, change: dict[str, Any], known: bool
) -> None:
    inputs = {key: value for key, value in (INPUTS | change).items() if value is not None}
    outputs = plugin.update(STATE, inputs, preview=True)
    results = ("before", "warned") if known else (UNKNOWN, UNKNOWN)
    assert outputs == inputs | dict(zip(("stdout", "stderr"), results, strict=True))
