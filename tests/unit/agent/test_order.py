"""The wire format: what is sent is what is read, and every bad field is named."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from cutover_agent.order import Deadlines, Declared, Order, OrderError, Probe
from tests.unit.agent.samples import order

FULL = order(
    probe=Probe("http://127.0.0.1:8000", "é", "Why?", "Paris", 9, "API_KEY"),
    policy="managed",
    deadlines=Deadlines(1, 2, 3, 4, 5),
)
DECLARED = Declared("small", "vllm-small.service", "0" * 64, True, "small")


@pytest.mark.parametrize("sent", [order(), FULL])
def test_an_order_arrives_as_it_was_sent(sent: Order) -> None:
    got = Order.from_json(sent.to_json())
    assert got == sent
    assert got.digest == sent.digest
    assert got.gpus == tuple(range(8))


def test_a_declaration_arrives_as_it_was_sent() -> None:
    assert Declared.from_json(DECLARED.to_json()) == DECLARED


def test_only_equal_orders_have_equal_digests() -> None:
    changes: list[dict[str, Any]] = [
        {},
        {"host": "other"},
        {"host_gpus": 4},
        {"gpus": (0,)},
        {"policy": "managed"},
        {"deadlines": Deadlines(gate=31)},
        {"probe": Probe("http://127.0.0.1:8000", "small", max_tokens=65)},
    ]
    assert len({order(**change).digest for change in changes}) == len(changes)
    assert order().digest == order().digest


def test_the_order_of_fields_does_not_matter_and_defaults_may_be_left_out() -> None:
    value = json.loads(order().to_json())
    for name in ("policy", "deadlines", "version"):
        del value[name]
    del value["probe"]["prompt"]
    assert Order.from_json(json.dumps(value)).digest == order().digest


def wrong(**changes: Any) -> dict[str, Any]:
    value = json.loads(order().to_json())
    for name, new in changes.items():
        at, _, leaf = name.rpartition("__")
        part = value[at] if at else value
        if new is ...:
            del part[leaf]
        else:
            part[leaf] = new
    return dict(value)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"host": ...}, "order.host: missing"),
        ({"probe__url": ...}, "order.probe.url: missing"),
        ({"extra": 1}, "order.extra: unknown field"),
        ({"probe__extra": 1}, "order.probe.extra: unknown field"),
        ({"host": 1}, "order.host: expected str, got int"),
        ({"host": None}, "order.host: expected str, got NoneType"),
        ({"host_gpus": "8"}, "order.host_gpus: expected int, got str"),
        ({"host_gpus": True}, "order.host_gpus: expected int, got bool"),
        ({"host_gpus": 8.0}, "order.host_gpus: expected int, got float"),
        ({"gpus": 0}, "order.gpus: expected a list, got int"),
        ({"gpus": "01"}, "order.gpus: expected a list, got str"),
        ({"gpus": [0, "1"]}, r"order.gpus\[1\]: expected int, got str"),
        ({"probe": []}, "order.probe: expected an object, got list"),
        ({"deadlines__load": "900"}, "order.deadlines.load: expected int, got str"),
        ({"version": 2}, "order: version 2 is not 1"),
        ({"policy": "anything"}, "order: policy 'anything' is none of managed, engines"),
        ({"deployment": "../x"}, "deployment '../x' is not a legal name"),
        ({"deployment": ""}, "deployment '' is not a legal name"),
        ({"deployment": "a\n"}, "is not a legal name"),
        ({"deployment": "-a"}, "is not a legal name"),
        ({"unit": "a.timer"}, "unit 'a.timer' is not a legal service name"),
        ({"unit": "../../a.service"}, "is not a legal service name"),
        ({"unit": "-a.service"}, "is not a legal service name"),
        ({"unit": "a.service\n"}, "is not a legal service name"),
    ],
)
def test_a_bad_field_is_named_in_one_sentence(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(OrderError, match=says) as told:
        Order.from_json(json.dumps(wrong(**changes)))
    assert "Traceback" not in str(told.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "3", '"x"', "\ufeff{}"])
def test_what_is_no_order_at_all_is_told(text: str) -> None:
    with pytest.raises(OrderError, match=r"order: (not JSON|expected an object)"):
        Order.from_json(text)
    with pytest.raises(OrderError, match=r"service: (not JSON|expected an object)"):
        Declared.from_json(text)


@pytest.mark.parametrize("field", [f.name for f in dataclasses.fields(Declared)])
def test_a_declaration_needs_every_field(field: str) -> None:
    value = json.loads(DECLARED.to_json())
    del value[field]
    with pytest.raises(OrderError, match=f"service.{field}: missing"):
        Declared.from_json(json.dumps(value))


def test_a_change_of_one_field_is_a_change_of_one_line() -> None:
    before, after = order().to_json(), order(policy="managed").to_json()
    changed = set(before.splitlines()) ^ set(after.splitlines())
    assert changed == {'  "policy": "engines",', '  "policy": "managed",'}
