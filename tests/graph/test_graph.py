from __future__ import annotations

import json
import os
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from components.connection import DIALS, SECONDS_TO_DIAL
from components.step import AGENT
from components.sudo import AS_ROOT
from tests.graph.recorder import Registered, plain_texts, record

ROOT = Path(__file__).resolve().parents[2]
DEPLOYMENTS = ("kimi-k25-int4-sglang", "minimax-m25", "glm5", "kimi-k25", "kimi-k25-int4")
PHASES = ("stage", "warm", "teardown", "gate", "install", "serve")
KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\npoison-key\n-----END OPENSSH PRIVATE KEY-----\n"


def config(active: str = DEPLOYMENTS[0], **host: Any) -> dict[str, Any]:
    box = {"address": "box.invalid", "key": KEY, "gpus": 8, **host}
    return {"active": active, "facts": "false", "hosts": {"box": box}}


def graph(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> dict[str, Registered]:
    return record(config(**changes), monkeypatch, ROOT)


def edges(resources: dict[str, Registered]) -> set[tuple[str, str]]:
    return {(name, other) for name, found in resources.items() for other in found.after}


def reaches(resources: dict[str, Registered], name: str, other: str) -> bool:
    after = resources[name].after
    return other in after or any(reaches(resources, nearer, other) for nearer in after)


def test_everything_of_a_host_is_there_and_belongs_where_a_reader_looks_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = graph(monkeypatch)
    parents = {name: resource.parent for name, resource in found.items()}
    host = ("agent", *PHASES, "runbook")
    expected = {f"box-{name}": "box" for name in (*host, *DEPLOYMENTS)}
    for deployment in DEPLOYMENTS:
        for child in ("env", "unit", "service"):
            expected[f"box-{deployment}-{child}"] = f"box-{deployment}"
    assert {name: parents[name] for name in expected} == expected
    assert set(parents) - set(expected) == {"box", "command"}


def test_a_cutover_goes_from_the_puts_over_release_and_gate_to_the_services(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = graph(monkeypatch)
    for deployment in DEPLOYMENTS:
        assert reaches(found, f"box-{deployment}-env", "box-agent")
        assert reaches(found, f"box-{deployment}-unit", "box-agent")
        assert reaches(found, "box-stage", f"box-{deployment}-env")
        assert reaches(found, "box-stage", f"box-{deployment}-unit")
        assert reaches(found, f"box-{deployment}-service", "box-serve")
    for earlier, later in pairwise(PHASES):
        assert f"box-{earlier}" in found[f"box-{later}"].after


def test_commands_of_one_host_run_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    found = graph(monkeypatch)
    commands = [name for name, r in found.items() if r.type == "command:remote:Command"]
    for one in commands:
        for other in commands:
            if one != other:
                assert reaches(found, one, other) or reaches(found, other, one), (one, other)


def test_the_edges_are_the_same_whoever_is_active(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (edges(graph(monkeypatch, active=name)) for name in DEPLOYMENTS[:2])
    assert first == second


def test_a_switch_changes_texts_and_no_resource(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (graph(monkeypatch, active=name) for name in DEPLOYMENTS[:2])
    assert first.keys() == second.keys()
    changed = {name for name in first if first[name].inputs != second[name].inputs}
    services = {f"box-{name}-service" for name in DEPLOYMENTS}
    assert changed == {*(f"box-{phase}" for phase in PHASES), *services}


def test_no_command_has_triggers_since_a_change_of_those_is_a_replacement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert all("triggers" not in resource.inputs for resource in graph(monkeypatch).values())


def test_no_command_uses_variables_of_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """sshd refuses them as a rule; where it does not, a long output is one that nothing can run."""
    for resource in graph(monkeypatch).values():
        if resource.type == "command:remote:Command":
            assert resource.inputs["addPreviousOutputInEnv"] is False
            assert "environment" not in resource.inputs


def test_no_secret_is_in_plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    catalogue = tmp_path / "deployments"
    shutil.copytree(ROOT / "deployments", catalogue)
    for path in catalogue.glob("*.yaml"):
        path.write_text(path.read_text() + "\nsecrets: [HF_TOKEN]\n")
    stack = config(key_passphrase="poison-passphrase")
    stack |= {"catalogue": str(catalogue), "secrets": {"HF_TOKEN": "poison-token"}}
    found = record(stack, monkeypatch, ROOT)
    texts = [text for resource in found.values() for text in plain_texts(resource.inputs)]
    assert not [text for text in texts if "poison" in text]
    everything = json.dumps([resource.inputs for resource in found.values()])
    for poison in ("poison-key", "poison-passphrase", "poison-token"):
        assert poison in everything, f"{poison} should be there, as a secret"


def test_what_can_be_deleted_is_deleted_before_it_is_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, resource in graph(monkeypatch).items():
        assert resource.delete_before_replace == ("delete" in resource.inputs), name


def test_the_order_shows_once_in_a_diff(monkeypatch: pytest.MonkeyPatch) -> None:
    found = graph(monkeypatch)
    assert found["box-stage"].hidden == ()
    for later in PHASES[1:]:
        assert found[f"box-{later}"].hidden == ("stdin",)


def test_commands_are_the_same_whoever_logs_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a host cannot be asked, the old text stays: it must not be another user's."""
    root, operator = graph(monkeypatch), graph(monkeypatch, user="operator")
    for name, resource in operator.items():
        if resource.type == "command:remote:Command":
            assert resource.inputs["connection"]["value"]["user"] == "operator"
            for text in ("create", "delete"):
                assert resource.inputs.get(text) == root[name].inputs.get(text)
            assert AS_ROOT in resource.inputs["create"]


@pytest.mark.parametrize(("sudo", "begins"), [(True, f"sudo -n {AGENT} "), (False, f"{AGENT} ")])
def test_sudo_may_be_set(sudo: bool, begins: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = graph(monkeypatch, user="operator", sudo=sudo)
    assert found["box-stage"].inputs["create"].startswith(begins)


@pytest.mark.parametrize(("user", "says"), [(0, "a  b *"), (1000, "-n echo a  b *")])
def test_only_who_is_not_root_goes_through_sudo(user: int, says: str, tmp_path: Path) -> None:
    for name, does in (("id", f"echo {user}"), ("sudo", 'printf "%s\\n" "$*"')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / name).chmod(0o755)
    words = ["sh", "-c", f"{AS_ROOT} echo 'a  b' '*'"]
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    assert subprocess.check_output(words, env=env, text=True) == f"{says}\n"


def test_cutovers_of_several_hosts_run_one_after_the_other_and_their_puts_side_by_side(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stack = config()
    stack["hosts"]["second"] = {**stack["hosts"]["box"], "address": "second.invalid"}
    found = record(stack, monkeypatch, ROOT)
    assert reaches(found, "second-stage", "box-serve")
    assert not reaches(found, f"second-{DEPLOYMENTS[1]}-unit", "box-agent")


def two_hosts(**changes: Any) -> dict[str, Any]:
    stack = config()
    second = {**stack["hosts"]["box"], "address": "second.invalid"}
    return {**stack, **changes, "hosts": {**stack["hosts"], "second": second}}


def test_on_request_hosts_are_cut_over_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    found = record(two_hosts(parallel="true"), monkeypatch, ROOT)
    assert not [
        (name, other) for name, other in edges(found) if name.split("-")[0] != other.split("-")[0]
    ]


def test_a_host_may_serve_another_deployment_than_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = two_hosts()
    stack["hosts"]["second"]["active"] = DEPLOYMENTS[1]
    found = record(stack, monkeypatch, ROOT)
    orders = {name: json.loads(found[f"{name}-stage"].inputs["stdin"]) for name in stack["hosts"]}
    assert [order["deployment"] for order in orders.values()] == [*DEPLOYMENTS[:2]]


def test_a_jump_host_is_on_the_way_of_every_command_with_its_own_key_and_pin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pin = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIN"
    proxy = {"address": "jump.invalid", "user": "hopper", "host_key": pin}
    for resource in graph(monkeypatch, proxy=proxy).values():
        if resource.type == "command:remote:Command":
            hop = resource.inputs["connection"]["value"]["proxy"]
            assert (hop["host"], hop["user"], hop["hostKey"]) == ("jump.invalid", "hopper", pin)
            assert (hop["dialErrorLimit"], hop["perDialTimeout"]) == (DIALS, SECONDS_TO_DIAL)
            assert KEY in json.dumps(hop["privateKey"]).replace("\\n", "\n")


def test_a_host_that_boots_is_waited_for_and_a_silent_one_given_up_in_a_stated_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for resource in graph(monkeypatch).values():
        if resource.type == "command:remote:Command":
            made = resource.inputs["connection"]["value"]
            assert (made["dialErrorLimit"], made["perDialTimeout"]) == (DIALS, SECONDS_TO_DIAL)
    refused = sum(min(0.1 * 1.5**dial, 5) for dial in range(DIALS))
    assert 60 < refused < 65
    assert refused + (DIALS + 1) * SECONDS_TO_DIAL < 180


def test_hooks_reach_the_order_as_lists_of_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    hooks = {"before_stop": ["/usr/bin/lb", "drain it; now"], "seconds": 9}
    order = json.loads(graph(monkeypatch, hooks=hooks)["box-stage"].inputs["stdin"])
    assert order["hooks"] == {
        "before_stop": ["/usr/bin/lb", "drain it; now"],
        "after_commit": [],
        "after_rollback": [],
        "seconds": 9,
    }
