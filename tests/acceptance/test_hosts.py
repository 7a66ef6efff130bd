from __future__ import annotations

import json
from pathlib import Path

import pytest

from sandbox import start
from tests.acceptance.stack import MODELS, SGLANG, VLLM, Stack, serves, settings


def test_a_host_that_fails_stops_those_that_come_after_it(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    state = tmp_path_factory.mktemp("hosts")
    with start("one", state=state) as one, start("two", state=state) as two:
        stack = Stack(tmp_path)
        stack.configure(active=SGLANG, hosts={"one": settings(one), "two": settings(two)})
        stack.up()
        assert [serves(one), serves(two)] == [MODELS[SGLANG]] * 2
        assert {host["serves"] for host in stack.outputs().values()} == {SGLANG}
        stack.configure(active=VLLM)
        broken = {"models": {MODELS[VLLM]: {"crash": "loading"}}}
        one.write("/etc/practice/engine.json", json.dumps(broken))
        stack.up(fails=True)
        assert [serves(one), serves(two)] == [MODELS[SGLANG]] * 2
        one.write("/etc/practice/engine.json", "{}")
        stack.up()
        assert [serves(one), serves(two)] == [MODELS[VLLM]] * 2
