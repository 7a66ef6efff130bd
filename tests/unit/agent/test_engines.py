"""Who is an inference server, from real titles and command lines, and who only looks like one."""

from __future__ import annotations

import pytest

from cutover_agent.engines import is_engine, is_protected
from tests.unit.agent.samples import NOTEBOOK, SGLANG, VLLM, process

ENGINES = [
    VLLM,
    SGLANG,
    ("python", "-m", "vllm.entrypoints.openai.api_server"),
    ("python3.12", "-O", "-m", "sglang.launch_server"),
    ("python3", "-X", "faulthandler", "-m", "vllm.entrypoints.openai.api_server"),
    ("python3", "-W", "ignore", "-m", "sglang.launch_server"),
    ("/opt/vllm/bin/python3", "/opt/vllm/bin/vllm", "serve", "/models/glm5"),
    ("/opt/vllm/bin/vllm", "serve", "/models/glm5"),
    ("python3 -m sglang.launch_server --model-path /models/kimi",),
    ("VLLM::EngineCore",),
    ("VLLM::EngineCore_DP0",),
    ("VLLM::Worker_TP0",),
    ("VLLM::Worker_PP0_TP1_EP1",),
    ("VLLM::APIServer_0",),
    ("sglang::scheduler_TP0",),
    ("sglang::scheduler_DP0_TP0_EP0",),
    ("sglang::detokenizer",),
    ("sglang::data_parallel_controller",),
]
LOOK_ALIKES = [
    (),
    ("",),
    (" ",),
    ("", "-m", "vllm.entrypoints.openai.api_server"),
    ("vim", "vllm-notes"),
    ("grep", "vllm"),
    ("grep", "-r", "VLLM::Worker"),
    ("tail", "-f", "/var/log/vllm"),
    ("journalctl", "-u", "vllm-small.service"),
    ("bash", "-c", "nohup python3 -m vllm.entrypoints.openai.api_server &"),
    ("ssh", "box", "vllm", "serve"),
    ("python3", "train.py", "--vllm"),
    ("python3", "train.py", "-m", "vllm.entrypoints.openai.api_server"),
    ("python3", "-m", "torch.distributed.run", "train.py"),
    ("python3", "-m", "pip", "install", "vllm"),
    ("python3", "-m", "pytest", "tests/vllm"),
    ("python3", "-m", "vllm_notes"),
    ("python3", "-m", "sglang_router.launch_router"),
    ("python3", "-c", "import vllm"),
    ("python3",),
    ("python3", "-m"),
    ("/usr/bin/python3", "/usr/bin/conda", "run", "-n", "vllm", "vllm", "serve"),
    NOTEBOOK,
    ("/usr/bin/python3", "-m", "jupyterlab", "--notebook-dir", "/home/a/vllm"),
    ("vllm-notes",),
    ("postgres: writer process",),
    ("nginx: worker process VLLM::Worker",),
]


@pytest.mark.parametrize("argv", ENGINES, ids=" ".join)
def test_an_engine_is_known(argv: tuple[str, ...]) -> None:
    assert is_engine(process(10, *argv))


@pytest.mark.parametrize("argv", LOOK_ALIKES, ids=repr)
def test_a_look_alike_is_none(argv: tuple[str, ...]) -> None:
    assert not is_engine(process(10, *argv))


@pytest.mark.parametrize("title", ["ray::IDLE", "ray::TrainWorker.fit", "ray::PreprocessData"])
def test_a_worker_of_ray_may_be_anything_and_is_no_proof_of_an_engine(title: str) -> None:
    assert not is_engine(process(10, title))


@pytest.mark.parametrize(
    ("name", "argv"),
    [
        ("nvidia-persiste", ("/usr/bin/nvidia-persistenced", "--user", "nvidia-persistenced")),
        ("nvidia-cuda-mps", ("nvidia-cuda-mps-server",)),
        ("nv-hostengine", ("/usr/bin/nv-hostengine", "-n")),
        ("dcgm-exporter", ("/usr/bin/dcgm-exporter",)),
        ("nvidia-smi", ("nvidia-smi", "dmon")),
        ("Xorg", ("/usr/lib/xorg/Xorg", ":0")),
        ("nvtop", ("nvtop",)),
        ("python3", ("nvitop",)),
    ],
)
def test_driver_display_and_monitors_are_protected(name: str, argv: tuple[str, ...]) -> None:
    assert is_protected(process(10, *argv, name=name))


@pytest.mark.parametrize("argv", [VLLM, NOTEBOOK, ("VLLM::Worker_TP0",), (), ("",), (" ",)])
def test_others_are_not_protected(argv: tuple[str, ...]) -> None:
    assert not is_protected(process(10, *argv))
