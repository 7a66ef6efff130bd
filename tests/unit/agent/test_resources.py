"""What deleting resources leaves on a host."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutover_agent import lock, resources
from cutover_agent.order import Declared
from cutover_agent.store import Record
from tests.unit.agent.samples import order
from tests.unit.agent.test_install import UNIT, Host


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    "kinds", [("service", "unit", "env"), ("env", "unit", "service")], ids=["as Pulumi", "reversed"]
)
def test_when_all_of_a_deployment_is_deleted_its_files_are_gone(
    host: Host, kinds: tuple[str, ...]
) -> None:
    host.own("small", UNIT, "env", "unit", "service")
    host.install("[Unit]\n", 'KEY="secret"\n')
    for kind in kinds:
        resources.drop(host.store, f"small-{kind}")
    assert host.files() == {}
    assert list((host.store.root / "texts").iterdir()) == []


def test_an_owner_that_owns_nothing_any_more_drops_nothing(host: Host) -> None:
    host.own("small", UNIT, "env", "unit", "service")
    host.install("[Unit]\n", "")
    resources.drop(host.store, "somebody-else")
    assert UNIT in host.files()


def test_a_unit_that_is_renamed_leaves_no_file_under_its_old_name(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F113."""
    monkeypatch.setattr(lock, "FOLDER", host.store.root / "run")
    monkeypatch.setattr(resources, "_answers", lambda *_: True)
    host.store.set_staged(order(deployment="big"))
    host.own("small", UNIT, "env", "unit", "service")
    host.install("[Unit]\n", "")
    new = "renamed.service"
    for kind in ("env", "unit"):
        text = host.store.keep(f"# {kind}\n")
        host.store.own(Record(f"small-{kind}", kind, "small", new, text))
    declared = Declared("small", new, host.store.keep("# unit\n"), False, "big")
    resources.service(host.store, "small-service", declared)
    assert host.files() == {new: "# unit\n", "small.env": "# env\n"}
    assert f"disable {UNIT}" in host.asked


def test_the_last_resource_leaves_only_when_no_other_is_there(host: Host) -> None:
    host.own("small", UNIT, "env")
    host.install("[Unit]\n", "")
    assert not resources.leave(host.store, "agent")
    assert UNIT in host.files()
    host.store.disown("small-env")
    assert resources.leave(host.store, "agent")
    assert host.files() == {}
