"""A catalogue file from what runs is one that the program reads, and that starts the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutover.catalogue import load_catalogue
from cutover.units import render_unit
from cutover_agent.adopt import differences
from cutover_agent.export import catalogue_file
from cutover_agent.unit_text import read_service

ROOT = Path(__file__).resolve().parents[3]
CATALOGUE = load_catalogue(ROOT / "deployments")

BY_HAND = """\
[Service]
User=ada
WorkingDirectory=/srv/models
Environment=NCCL_PROTO=LL VLLM_API_KEY=poison
ExecStart=/opt/vllm/bin/python3 -m vllm.entrypoints.openai.api_server --model /models/M \\
  --served-model-name m "m two" -tp 8 --port 8000 --trust-remote-code --max-num-seqs=64
"""


def test_a_unit_by_hand_becomes_a_file_of_the_catalogue_without_its_secrets(
    tmp_path: Path,
) -> None:
    text = catalogue_file(read_service(BY_HAND.replace("-tp", "--tp")), "vllm-m.service")
    assert "poison" not in text
    (tmp_path / "m.yaml").write_text(text.replace("m two", "m-two"))
    found = load_catalogue(tmp_path)["m"]
    assert (found.engine, found.checkpoint, found.user) == ("vllm", "/models/M", "ada")
    assert found.served_names == ["m", "m-two"]
    assert found.args == {"trust-remote-code": True, "max-num-seqs": 64}
    assert (found.env, found.secrets) == ({"NCCL_PROTO": "LL"}, ["VLLM_API_KEY"])
    assert found.working_directory == "/srv/models"


@pytest.mark.parametrize("name", ["kimi-k25-int4-sglang", "minimax-m25"])
def test_a_unit_of_ours_comes_back_as_one_that_runs_the_same(name: str, tmp_path: Path) -> None:
    unit = read_service(render_unit(CATALOGUE[name]))
    text = catalogue_file(unit, CATALOGUE[name].unit)
    (tmp_path / f"{name}.yaml").write_text(text)
    again = read_service(render_unit(load_catalogue(tmp_path)[name]))
    assert differences(again, unit, {}) == []
