"""What the host remembers, in a folder of its own."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cutover_agent.attempt import Journal
from cutover_agent.order import OrderError, text_digest
from cutover_agent.store import Record, Serving, Store
from tests.unit.agent.samples import order

ENV = Record("T::box-small-env", "env", "small", "vllm-small.service")
UNIT = Record("T::box-small-unit", "unit", "small", "vllm-small.service")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "cutover")
    made.prepare()
    return made


def put(store: Store, record: Record, text: str) -> str:
    digest = store.keep(text)
    store.own(Record(record.owner, record.kind, record.deployment, record.unit, digest))
    return digest


def test_everything_is_closed_to_all_but_root(store: Store) -> None:
    put(store, ENV, "KEY=secret\n")
    store.receipt("0" * 64)
    store.set_staged(order())
    for path in [store.root, *store.root.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


@pytest.mark.parametrize("text", ["[Unit]\n", "", "KEY=a\r\nB=c\r", "é\u2028\n"])
def test_a_text_is_found_under_its_digest_and_is_that_text(store: Store, text: str) -> None:
    digest = store.keep(text)
    assert store.keep(text) == digest
    assert text_digest(store.text(digest)) == digest


def test_a_lost_text_says_what_to_do() -> None:
    with pytest.raises(OrderError, match="run `pulumi up` with `facts: true`"):
        Store(Path("/nonexistent")).text("0" * 64)


def test_owners_come_and_go_and_a_put_is_found_by_kind_and_deployment(store: Store) -> None:
    digest = put(store, ENV, "KEY=1\n")
    put(store, UNIT, "[Unit]\n")
    assert store.put_digest("env", "small") == digest
    assert set(store.records()) == {ENV.owner, UNIT.owner}
    changed = put(store, ENV, "KEY=2\n")
    assert store.put_digest("env", "small") == changed != digest
    store.disown(ENV.owner)
    store.disown("nobody")
    assert set(store.records()) == {UNIT.owner}
    with pytest.raises(OrderError, match="small: its env text is not on this host"):
        store.put_digest("env", "small")


def test_a_renamed_owner_takes_over_and_the_old_one_owns_nothing_more(store: Store) -> None:
    put(store, ENV, "KEY=1\n")
    put(store, UNIT, "[Unit]\n")
    digest = put(store, replace(ENV, owner="Renamed::box-small-env"), "KEY=2\n")
    assert set(store.records()) == {"Renamed::box-small-env", UNIT.owner}
    assert store.put_digest("env", "small") == digest


def test_an_owner_whose_type_was_renamed_is_still_that_owner(store: Store) -> None:
    """Where the host could not be asked, its put says the old type, and its delete the new one."""
    put(store, ENV, "KEY=1\n")
    put(store, UNIT, "[Unit]\n")
    found = store.owned_by("New:Type::box-small-env")
    assert found and (found.kind, found.unit) == ("env", ENV.unit)
    store.disown("New:Type::box-small-env")
    assert set(store.records()) == {UNIT.owner}
    assert store.owned_by("New:Type::box-small-en") is None


def test_the_unit_of_texts_is_what_the_order_says(store: Store) -> None:
    put(store, ENV, "KEY=1\n")
    put(store, replace(UNIT, deployment="big"), "[Unit]\n")
    store.name_unit("small", "renamed.service")
    assert store.units() == {"renamed.service", UNIT.unit}


def test_our_units_are_those_put_and_those_written_and_not_yet_removed(store: Store) -> None:
    put(store, UNIT, "[Unit]\n")
    store.note_installed(Path("/etc/systemd/system/old.service"), "d" * 64)
    store.note_installed(Path("/etc/cutover/old.env"), "e" * 64)
    assert store.units() == {"vllm-small.service", "old.service"}
    store.note_installed(Path("/etc/systemd/system/old.service"), "")
    assert store.units() == {"vllm-small.service"}


def test_what_serves_and_what_was_staged_survive_a_new_process(store: Store) -> None:
    assert (store.serving(), store.staged()) == (None, None)
    serving = Serving(order(), "e" * 64, "20260101T000000-aaaa", 5.0, {"load_seconds": 1.5})
    store.set_serving(serving)
    store.set_staged(order(deployment="big"))
    again = Store(store.root)
    assert again.serving() == serving
    assert again.staged() == order(deployment="big")
    again.set_serving(None)
    assert store.serving() is None


@pytest.mark.parametrize("version", [0, 99])
def test_what_another_version_of_the_agent_has_written_is_still_known(
    store: Store, version: int
) -> None:
    """An upgrade, or the way back from one, must not lose what serves."""
    serving = Serving(order(), "e" * 64, "t", 5.0, {"load_seconds": 1.5})
    store.set_serving(serving)
    store.set_before(serving)
    store.set_staged(order())
    store.own(UNIT)
    Journal(store, "t").create(order())
    for path in [*store.root.glob("*.json"), *store.root.glob("transactions/t/*.json")]:
        path.write_text(json.dumps(strange(json.loads(path.read_text()), version)))
    known = replace(order(), version=version)
    assert store.serving() == replace(serving, order=known) == store.before()
    assert store.staged() == Journal(store, "t").order() == known
    assert store.records() == {UNIT.owner: UNIT}
    attempt = Journal(store, "t").load()
    assert attempt and attempt.deployment == "small"


def strange(value: Any, version: int) -> Any:
    """The same with another version, with fields that nobody here knows, and without one."""
    if not isinstance(value, dict):
        return value
    found = {name: strange(one, version) for name, one in value.items()}
    if "deployment" in found or "order" in found or "url" in found:
        found |= {"from the future": [1]}
    if "version" in found:
        found["version"] = version
        del found["companions"]
    return found


def test_only_texts_that_nothing_refers_to_are_forgotten(store: Store) -> None:
    texts = {name: store.keep(name) for name in ("put", "installed", "unit", "env", "old")}
    put(store, UNIT, "put")
    store.note_installed(Path("/etc/systemd/system/a.service"), texts["installed"])
    store.set_serving(Serving(order(unit_digest=texts["unit"]), texts["env"], "t", 1.0))
    store.forget_texts()
    kept = set(os.listdir(store.root / "texts"))
    assert kept == {texts[name] for name in ("put", "installed", "unit", "env")}


def test_a_receipt_is_stable_and_does_not_give_the_text_away(store: Store, tmp_path: Path) -> None:
    digest = text_digest("KEY=secret\n")
    receipt = store.receipt(digest)
    assert store.receipt(digest) == receipt
    assert receipt not in digest
    other = Store(tmp_path / "other")
    other.prepare()
    assert other.receipt(digest) != receipt
    assert store.receipt(text_digest("KEY=other\n")) != receipt


def test_room_is_set_aside_in_parts_and_given_up_one_by_one(store: Store) -> None:
    def parts() -> int:
        return len(list(store.root.glob("reserve-*")))

    store.reserve()
    seen = [parts()]
    for _ in range(4):
        store.spend_reserve()
        seen.append(parts())
    assert seen == [3, 2, 1, 0, 0]
    store.reserve()
    assert parts() == 3, "the next cutover sets it aside again"
