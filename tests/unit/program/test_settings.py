"""Stack config: what is taken, and the sentence for everything that is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cutover.errors import ConfigError
from cutover.settings import load_settings, private_key
from tests.unit.program.samples import host, settings

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----\n"
HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ5vJ3x"
GPUS = "give a whole number from 1 to 16"
PORT = "give a whole number from 1 to 65535"
ADDRESS = "give a host name or an IP address, with user and port in fields of their own"
HOSTS = "give hosts by name, each with at least address and gpus"


def refusal(values: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as raised:
        load_settings(values, "Pulumi.prod.yaml")
    return str(raised.value)


def test_a_host_needs_only_an_address_and_its_number_of_gpus() -> None:
    loaded = load_settings(settings(), "Pulumi.prod.yaml")
    only = loaded.hosts["gpu-box"]
    assert (only.port, only.user, only.uses_sudo, only.policy) == (22, "root", False, "engines")
    assert (only.key, only.key_file, only.host_key) == (None, None, None)
    assert (loaded.catalogue, loaded.secrets) == ("deployments", {})


@pytest.mark.parametrize(
    ("user", "sudo", "expected"),
    [("root", None, False), ("ops", None, True), ("ops", False, False), ("root", True, True)],
)
def test_every_user_but_root_uses_sudo_unless_told(
    user: str, sudo: bool | None, expected: bool
) -> None:
    values = settings(hosts={"a": host(user=user, sudo=sudo)})
    assert load_settings(values, "f").hosts["a"].uses_sudo is expected


@pytest.mark.parametrize("address", ["10.0.0.5", "gpu-box.invalid", "GPU1", "fe80::1", "::1"])
def test_names_and_addresses_of_both_families_are_taken(address: str) -> None:
    assert load_settings(settings(hosts={"a": host(address=address)}), "f").hosts["a"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"gpus": 9999}, f"gpus: 9999 is not allowed: {GPUS}"),
        ({"gpus": 0}, f"gpus: 0 is not allowed: {GPUS}"),
        ({"gpus": "8"}, f'gpus: "8" is not allowed: {GPUS}'),
        ({"gpus": True}, f"gpus: true is not allowed: {GPUS}"),
        ({"gpus": None}, f"gpus: null is not allowed: {GPUS}"),
        ({"port": 0}, f"port: 0 is not allowed: {PORT}"),
        ({"port": 65536}, f"port: 65536 is not allowed: {PORT}"),
        ({"sudo": "yes"}, 'sudo: "yes" is not allowed: give true or false'),
        ({"user": "a b"}, 'user: "a b" is not allowed: give the name of a user on the host'),
        ({"address": ""}, f'address: "" is not allowed: {ADDRESS}'),
        ({"address": "root@box"}, f'address: "root@box" is not allowed: {ADDRESS}'),
        ({"address": "10.0.0.5:22"}, f'address: "10.0.0.5:22" is not allowed: {ADDRESS}'),
        (
            {"policy": "all"},
            'policy: "all" is not allowed: give managed or engines',
        ),
        ({"prot": 22}, "prot: is unknown: did you mean port?"),
        (
            {"deadlines": {"release": 20, "kill": 20}},
            "deadlines.release: has to be longer than kill, 20 s",
        ),
        (
            {"xyz": 1},
            "xyz: is unknown: there is address, port, user, sudo, key_file, key, key_passphrase, "
            "host_key, proxy, active, hooks, deadlines, on_destroy, accept_no_rollback, gpus, "
            "policy, runbook, idle_mib, bad_remap, also_end, companions, warm_mib_per_second, "
            "protect, gone",
        ),
        (
            {"host_key": "gpu-box " + HOST_KEY},
            f'host_key: "gpu-box {HOST_KEY}" is not allowed: give type and key as in the host\'s '
            ".pub file, such as `ssh-ed25519 AAAA…`, without comment",
        ),
        (
            {"key": "s3cret"},
            "key: is not a private key: give its whole text, or its path as key_file",
        ),
        ({"key": 5}, "key: this value is not allowed: give the whole text of a private key"),
        ({"key": KEY, "key_file": "/k"}, "key_file: is given beside key: give one of the two"),
        (
            {"key_passphrase": "s3cret"},
            "key_passphrase: is given without a key: give key_file or key as well",
        ),
    ],
)
def test_a_wrong_field_of_a_host_is_named_with_what_is_allowed(
    changes: dict[str, Any], expected: str
) -> None:
    assert refusal(settings(hosts={"gpu-box": host(**changes)})) == (
        f"Pulumi.prod.yaml: hosts.gpu-box.{expected}"
    )


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"hosts": {"a": host()}}, "active: is missing: give the name of a deployment"),
        ({"active": "x"}, f"hosts: is missing: {HOSTS}"),
        (settings(hosts={}), f"hosts: is empty: {HOSTS}"),
        (settings(hosts=[host(key="s3cret")]), f"hosts: this value is not allowed: {HOSTS}"),
        (settings(hosts={"a": "s3cret"}), f"hosts.a: this value is not allowed: {HOSTS}"),
        (settings(hosts={"a": {"address": "b"}}), f"hosts.a.gpus: is missing: {GPUS}"),
        (
            settings(hosts={"Box_1": host()}),
            "hosts.Box_1: is not a legal name: use a-z, 0-9 and dashes inside, at most 63 letters",
        ),
        (settings(actve="x"), "actve: is unknown: did you mean active?"),
        (settings(active=7), "active: 7 is not allowed: give the name of a deployment"),
        (
            settings(catalogue=["a"]),
            "catalogue: a list is not allowed: give the path of a folder",
        ),
        (
            settings(secrets={"TOKEN": ["s3cret"]}),
            "secrets.TOKEN: this value is not allowed: give names of variables with their values "
            "as text",
        ),
        (
            settings(secrets={"TOKEN": "s3cret\n"}),
            "secrets.TOKEN: holds a line break, which no HTTP header carries: write it on one line",
        ),
        (
            settings(secrets={"MY-TOKEN": "s3cret"}),
            "secrets.MY-TOKEN: is not a variable name: use letters, digits and underscores",
        ),
        (
            settings(hosts={"a": host(address="10.0.0.1"), "b": host(address="10.0.0.1", port=22)}),
            "hosts.b: has the address and port of hosts.a (10.0.0.1, 22): give each host its own",
        ),
        (
            settings(hosts={"a": host(address="Box.invalid"), "b": host(address="box.INVALID")}),
            "hosts.b: has the address and port of hosts.a (box.invalid, 22): "
            "give each host its own",
        ),
    ],
)
def test_wrong_config_is_one_sentence(values: dict[str, Any], expected: str) -> None:
    assert refusal(values) == f"Pulumi.prod.yaml: {expected}"


def test_no_sentence_shows_a_secret() -> None:
    secret = "s3cret"
    faults = [
        settings(hosts={"a": host(key=secret, key_passphrase=secret, gpus=0)}),
        settings(hosts={"a": host(key=[secret], key_passphrase=[secret])}),
        settings(hosts={"a": host(ky=secret)}),
        settings(secrets=secret),
        settings(secrets=[secret]),
        settings(secrets={"A": {"B": secret}, "C": secret + "\0"}),
    ]
    for values in faults:
        assert secret not in refusal(values)


def test_settings_are_shown_without_their_secrets() -> None:
    values = settings(hosts={"a": host(key=KEY, key_passphrase="s3cret")}, secrets={"A": "s3cret"})
    shown = repr(load_settings(values, "f"))
    assert "PRIVATE" not in shown
    assert "s3cret" not in shown


def test_of_many_faults_the_first_three_are_told_in_order() -> None:
    values = settings(hosts={name: host(gpus=0) for name in "dbca"})
    assert [line.split(":")[1] for line in refusal(values).split("\n")] == [
        " hosts.a.gpus",
        " hosts.b.gpus",
        " hosts.c.gpus",
    ]


def test_hosts_behind_one_address_differ_by_port() -> None:
    values = settings(hosts={"a": host(port=2201), "b": host(port=2202)})
    assert len(load_settings(values, "f").hosts) == 2


@pytest.mark.parametrize(("stored", "value"), [(12345, "12345"), (True, "true"), ("x", "x")])
def test_a_secret_that_pulumi_stored_as_number_or_bool_is_its_text(stored: Any, value: str) -> None:
    assert load_settings(settings(secrets={"TOKEN": stored}), "f").secrets == {"TOKEN": value}


def test_the_key_is_read_from_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "id").write_text(KEY)
    loaded = load_settings(settings(hosts={"a": host(key_file="~/id")}), "f")
    assert private_key("a", loaded.hosts["a"], "f") == KEY


def test_without_key_and_file_the_agent_is_left_to_answer() -> None:
    assert private_key("a", load_settings(settings(), "f").hosts["gpu-box"], "f") is None


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "cannot be read (no such file or directory): give a private key"),
        ("ssh-ed25519 AAAA me", "is not a private key: give the one without .pub"),
    ],
)
def test_a_key_file_without_a_private_key_is_named(
    tmp_path: Path, content: str | None, expected: str
) -> None:
    path = tmp_path / "id"
    if content is not None:
        path.write_text(content)
    loaded = load_settings(settings(hosts={"a": host(key_file=str(path))}), "f")
    with pytest.raises(ConfigError) as raised:
        private_key("a", loaded.hosts["a"], "Pulumi.prod.yaml")
    assert str(raised.value) == f"Pulumi.prod.yaml: hosts.a.key_file: {path} {expected}"
