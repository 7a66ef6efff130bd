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
    text = catalogue_file(read_service(BY_HAND), "vllm-m.service")
    assert "poison" not in text
    (tmp_path / "m.yaml").write_text(text.replace("m two", "m-two"))
    found = load_catalogue(tmp_path)["m"]
    assert (found.engine, found.checkpoint, found.user) == ("vllm", "/models/M", "ada")
    assert found.served_names == ["m", "m-two"]
    assert found.args == {"trust-remote-code": True, "max-num-seqs": 64}
    assert (found.env, found.secrets) == ({"NCCL_PROTO": "LL"}, ["VLLM_API_KEY"])
    assert found.working_directory == "/srv/models"
    assert len(found.gpus) == 8
    by_option = BY_HAND.replace(" VLLM_API_KEY=poison", "").replace("-tp", "--api-key poison -tp")
    told = catalogue_file(read_service(by_option), "vllm-m.service")
    assert "poison" not in told and 'secrets: ["VLLM_API_KEY"]' in told, "it stays closed"


@pytest.mark.parametrize(
    ("words", "gpus"),
    [
        ("-m vllm.entrypoints.openai.api_server --model /m -pp 2 -tp 2", 4),
        ("-m sglang.launch_server --model-path /m --tp 4 --dp-size 2 --enable-dp-attention", 4),
        ("-m vllm.entrypoints.openai.api_server --model /m -O3", 1),
        ("/opt/vllm/bin/vllm serve /m -tp 2 --port 9000", 2),
    ],
)
def test_every_way_to_start_an_engine_becomes_a_file_that_starts_it_so(
    words: str, gpus: int, tmp_path: Path
) -> None:
    program = words if words.startswith("/") else f"/opt/bin/python3 {words}"
    unit = read_service(f"[Service]\nExecStart={program}\n")
    told = catalogue_file(unit, "m.service")
    (tmp_path / "m.yaml").write_text(told)
    found = load_catalogue(tmp_path)["m"]
    assert (found.checkpoint, found.served_names, len(found.gpus)) == ("/m", ["/m"], gpus)
    assert found.listen.port == (9000 if "9000" in words else 8000)
    if found.engine == "command":
        assert differences(read_service(render_unit(found)), unit, found.env) == [], "taken over"


@pytest.mark.parametrize("name", ["kimi-k25-int4-sglang", "minimax-m25"])
def test_a_unit_of_ours_comes_back_as_one_that_runs_the_same(name: str, tmp_path: Path) -> None:
    unit = read_service(render_unit(CATALOGUE[name]))
    text = catalogue_file(unit, CATALOGUE[name].unit)
    (tmp_path / f"{name}.yaml").write_text(text)
    again = read_service(render_unit(load_catalogue(tmp_path)[name]))
    assert differences(again, unit, again.variables) == []
