"""What goes to a host in a preview."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from components.fleet import Plan
from cutover.catalogue import load_catalogue
from cutover.host import Keys
from cutover.settings import load_settings
from cutover.units import render_files
from cutover_agent.order import text_digest

ROOT = Path(__file__).resolve().parents[3]
PIN = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIP0zTyRTthzCAXeJY6DUUUvNXvnbfwZN3HiKops84Pay"
BOX = {"address": "box.invalid", "gpus": 8}


def line(folder: Path, **host: Any) -> dict[str, Any]:
    text = (ROOT / "deployments/minimax-m25.yaml").read_text()
    (folder / "minimax-m25.yaml").write_text(text + "\nsecrets: [HF_TOKEN]\n")
    values = {"active": "minimax-m25", "secrets": {"HF_TOKEN": "poison-token"}}
    settings = load_settings({**values, "hosts": {"box": {**BOX, **host}}}, "Pulumi.test.yaml")
    one = render_files(load_catalogue(folder)["minimax-m25"], settings.secrets)
    plan = Plan(settings, {"minimax-m25": one}, {"box": one}, {"box": Keys(None, None)})
    found: dict[str, Any] = json.loads(plan.questions()["box"].line)
    assert found["env_digest"] == text_digest(one.environment_text)
    return found


@pytest.mark.parametrize(("pin", "told"), [({"host_key": PIN}, True), ({}, False)])
def test_a_secret_goes_only_to_a_host_whose_key_is_pinned(
    pin: dict[str, str], told: bool, tmp_path: Path
) -> None:
    asked = line(tmp_path, **pin)
    assert ("poison-token" in asked["env_text"]) == told
    assert ("poison-token" in json.dumps(asked)) == told
