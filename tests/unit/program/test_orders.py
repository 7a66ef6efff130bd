"""Orders and declarations for the agent."""

from __future__ import annotations

from typing import Any

import pytest

from cutover.orders import declared_for, local_url, order_for, probe_for, public_url
from cutover.settings import Host
from cutover_agent.order import Deadlines, Declared, Order, text_digest
from tests.unit.program.samples import deployment, host


def box(**changes: Any) -> Host:
    return Host.model_validate(host(**changes))


@pytest.mark.parametrize(
    ("bound", "local", "public"),
    [
        ("0.0.0.0", "http://127.0.0.1:8000", "http://10.0.0.5:8000"),
        ("::", "http://[::1]:8000", "http://10.0.0.5:8000"),
        ("[::1]", "http://[::1]:8000", "http://[::1]:8000"),
        ("10.0.0.7", "http://10.0.0.7:8000", "http://10.0.0.7:8000"),
        ("fd00::7", "http://[fd00::7]:8000", "http://[fd00::7]:8000"),
        ("localhost", "http://localhost:8000", "http://localhost:8000"),
    ],
)
def test_the_server_is_asked_where_it_listens(bound: str, local: str, public: str) -> None:
    listen = deployment(listen={"host": bound}).listen
    assert local_url(listen) == local
    assert public_url(box(address="10.0.0.5"), listen) == public


def test_an_order_says_all_that_the_host_has_to_know() -> None:
    one = deployment(
        gpus=[0, 3],
        served_names=["first", "second"],
        timeouts={"load": 700, "stop": 50, "smoke": 20},
        smoke={"prompt": "2+2?", "expect": "4", "max_tokens": 9},
    )
    limits = {"release": 40, "gate": 41, "settle": 42, "kill": 13}
    order = order_for("gpu-box", box(policy="managed", deadlines=limits), one, "text")
    assert (order.host, order.host_gpus, order.policy) == ("gpu-box", 8, "managed")
    assert (order.deployment, order.unit) == ("small", "vllm-small.service")
    assert order.unit_digest == text_digest("text")
    assert (order.gpus, order.checkpoint) == ((0, 3), "/models/small")
    assert order.deadlines == Deadlines(50, 40, 41, 700, 20, 42, 13, 30)
    assert (order.probe.model, order.probe.prompt) == ("first", "2+2?")
    assert (order.probe.expect, order.probe.max_tokens) == ("4", 9)
    assert Order.from_json(order.to_json()) == order


def test_gpus_named_by_uuid_reach_the_host_as_such() -> None:
    uuids = ("GPU-1a2b3c4d-1111-2222-3333-444455556661", "GPU-1a2b3c4d")
    order = order_for("gpu-box", box(), deployment(gpus=list(uuids)), "text")
    assert (order.gpu_uuids, order.gpus) == (uuids, (0, 1))
    assert Order.from_json(order.to_json()) == order


@pytest.mark.parametrize(("active", "enabled"), [("small", True), ("other", False)])
def test_only_the_active_deployment_is_declared_enabled(active: str, enabled: bool) -> None:
    declared = declared_for(deployment(), deployment(active), "text")
    assert (declared.enabled, declared.serves) == (enabled, active)
    assert Declared.from_json(declared.to_json()) == declared


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"secrets": ["VLLM_API_KEY"]}, "VLLM_API_KEY"),
        ({"secrets": ["HF_TOKEN"]}, ""),
        ({"engine": "sglang", "secrets": ["VLLM_API_KEY"]}, ""),
    ],
)
def test_the_probe_takes_the_api_key_from_the_secret_that_the_engine_reads(
    changes: dict[str, Any], expected: str
) -> None:
    assert probe_for(deployment(**changes)).api_key_env == expected
