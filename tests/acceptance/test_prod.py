from __future__ import annotations

import shutil
from pathlib import Path

import yaml

from sandbox import Host
from tests.acceptance.stack import MODELS, ROOT, SGLANG, VLLM, Stack, serves


def test_the_production_stack_works_as_it_is_but_for_address_port_and_keys(
    box: Host, tmp_path: Path
) -> None:
    stack = Stack(tmp_path, "prod")
    shutil.copy(ROOT / "Pulumi.prod.yaml", stack.file)
    hosts = yaml.safe_load(stack.file.read_text())["config"]["cutover:hosts"]
    assert [host["address"].endswith(".invalid") for host in hosts.values()] == [True]
    hosts["gpu-box"].update(
        address=box.address, port=box.port, key_file=str(box.key_path), host_key=box.host_key
    )
    stack.configure(hosts=hosts)
    stack.up()
    assert serves(box) == MODELS[SGLANG]
    stack.configure(active=VLLM)
    assert f'"{SGLANG}" => "{VLLM}"' in stack.preview("--diff").text
    stack.up()
    assert serves(box) == MODELS[VLLM]
    assert stack.outputs()["gpu-box"]["serves"] == VLLM
