"""The five deployments on a practice host, and what is refused while one of them serves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cutover.catalogue import load_catalogue
from cutover.orders import order_for
from cutover.settings import load_settings
from cutover.units import render_unit
from sandbox import Host, start
from tests.acceptance.stack import ROOT, Stack, logins, serves, settings, unit

CATALOGUE = load_catalogue(ROOT / "deployments")
MINIMAX = CATALOGUE["minimax-m25"]
SGLANG, NVFP4 = "kimi-k25-int4-sglang", "kimi-k25"
SITE = "/opt/sglang/lib/python3.12/site-packages"


@pytest.fixture
def five(box: Host, tmp_path: Path) -> Stack:
    """A stack with the whole catalogue, MiniMax active and up, and loads that take no time."""
    made = whole(box, tmp_path)
    made.up()
    return made


def whole(box: Host, folder: Path) -> Stack:
    """A stack of the whole catalogue, on a host whose engines load in no time."""
    box.write("/etc/practice/engine.json", json.dumps({"load_seconds": 0.3}))
    made = Stack(folder, catalogue=tuple(CATALOGUE))
    made.configure(active=MINIMAX.name, hosts={"box": settings(box)})
    return made


def test_each_of_the_five_is_switched_to_and_from(five: Stack, box: Host) -> None:
    for name in ("glm5", "kimi-k25", "kimi-k25-int4", SGLANG, "minimax-m25"):
        five.configure(active=name)
        five.up()
        assert serves(box) == CATALOGUE[name].served_names[0]
        assert five.outputs()["box"]["serves"] == name
        states = {n: unit(box, one.unit, "ActiveState") for n, one in CATALOGUE.items()}
        assert [n for n, state in states.items() if state != "inactive"] == [name]


def test_the_edited_view_is_served_and_the_checkpoint_stays_as_it_was(
    five: Stack, box: Host
) -> None:
    five.configure(active=NVFP4)
    shown = five.preview("--diff").text
    assert "kv_cache_quant_algo" in shown and "kv_cache_scheme" in shown
    five.up()
    view = CATALOGUE[NVFP4].model_path
    assert view in unit(box, CATALOGUE[NVFP4].unit, "ExecStart")
    assert "kv_cache_quant_algo" not in box.read(f"{view}/hf_quant_config.json")
    assert "kv_cache_quant_algo" in box.read("/models/Kimi-K2.5-NVFP4/hf_quant_config.json")
    assert "kv_cache_scheme" in box.read("/models/Kimi-K2.5-NVFP4/config.json")
    five.destroy()
    left = box.exec(["ls", "-d", "/var/cache/cutover"], check=False)
    assert left.returncode != 0


KIMI, EAGLE, GLM = "/models/Kimi-K2.5-INT4", "/models/Kimi-K2.5-EAGLE3", "/models/GLM-5"
SHARD = f"{KIMI}/model-00007-of-00064.safetensors"
GGUF = "/models/GLM-5-GGUF/GLM-5.gguf"
WORKER = f"{SITE}/sglang/srt/speculative/eagle_worker_v2.py"
DROPINS = "/etc/systemd/system/vllm-.service.d"
NVFP4_SHARD = "/models/Kimi-K2.5-NVFP4/model-00007-of-00119.safetensors"
MASK = "/run/systemd/system/vllm-glm5.service"

REFUSALS: dict[str, tuple[str, str, str, str]] = {
    "missing shard": (
        "kimi-k25-int4",
        f"mv {SHARD} /root/away",
        f"mv /root/away {SHARD}",
        "lacks model-00007-of-00064.safetensors, of 64 in its index",
    ),
    "cut shard": (
        "kimi-k25-int4",
        f"cp {SHARD} /root/away; truncate -s -1 {SHARD}",
        f"mv /root/away {SHARD}",
        "cut or damaged shards: model-00007-of-00064.safetensors",
    ),
    "unreadable shard": (
        NVFP4,
        f"chmod 600 {NVFP4_SHARD}",
        f"chmod 644 {NVFP4_SHARD}",
        f"the user operator cannot read {NVFP4_SHARD}: Permission denied",
    ),
    "no draft": (SGLANG, f"mv {EAGLE} /root/away", f"mv /root/away {EAGLE}", "is not there"),
    "cut GGUF": (
        "glm5",
        f"cp {GGUF} /root/away; truncate -s -1 {GGUF}",
        f"mv /root/away {GGUF}",
        "GLM-5.gguf is cut: ",
    ),
    "no tokenizer": (
        "glm5",
        f"mv {GLM} /root/away",
        f"mv /root/away {GLM}",
        "the tokenizer folder /models/GLM-5 is not there",
    ),
    "no mount": (
        "glm5",
        "echo nas:/m /models nfs ro 0 0 >/etc/fstab",
        "rm /etc/fstab",
        "/models is not mounted, and /models/GLM-5 is on it: run `mount /models`",
    ),
    "undone patch": (
        SGLANG,
        f"cp {WORKER} /root/away; echo >>{WORKER}",
        f"mv /root/away {WORKER}",
        "eagle_worker_v2.py is not as patched",
    ),
    "foreign drop-in": (
        "glm5",
        f"mkdir {DROPINS}; echo Environment=CUDA_VISIBLE_DEVICES=0 >{DROPINS}/override.conf",
        f"rm -r {DROPINS}",
        f"{DROPINS}/override.conf changes Environment of vllm-glm5.service",
    ),
    "mask": ("glm5", f"ln -s /dev/null {MASK}", f"rm {MASK}", "vllm-glm5.service is masked"),
    "stranger on the port": (
        "glm5",
        # Beside the server that is to be switched off, on a loopback address of its own.
        "systemd-run --quiet --unit=stranger python3 -c 'import socket, time; s = socket.socket(); "
        's.bind(("127.0.0.9", 8001)); s.listen(); time.sleep(3600)\'; '
        "until ss -ltn | grep -q :8001; do sleep 0.05; done",
        "systemctl stop stranger",
        "port 8001 is taken by pid ",
    ),
}


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stack, Host]]:
    """A host that serves MiniMax all the time, since every switch on it is refused."""
    with start("box", state=tmp_path_factory.mktemp("hosts")) as box:
        box.exec(["rm", "-f", "/etc/fstab"])
        stack = whole(box, tmp_path_factory.mktemp("stack"))
        stack.edit("glm5", "gpus: 8", "gpus: 8\nlisten:\n  port: 8001")
        stack.edit(NVFP4, "gpus: 8", "gpus: 8\nuser: operator")
        stack.up()
        yield stack, box


@pytest.mark.xdist_group("refusals")
@pytest.mark.parametrize("case", REFUSALS.values(), ids=REFUSALS)
def test_what_the_host_lacks_is_one_sentence_while_the_old_model_answers(
    quiet: tuple[Stack, Host], case: tuple[str, str, str, str]
) -> None:
    stack, box = quiet
    target, harm, mend, says = case
    before = unit(box, MINIMAX.unit, "MainPID")
    box.exec(["sh", "-c", harm])
    try:
        stack.configure(active=target)
        run = stack.up(fails=True)
        assert says in run.text
        assert "box-stage" in run.text and "box-teardown" not in run.text
        assert serves(box) == MINIMAX.served_names[0]
        assert unit(box, MINIMAX.unit, "MainPID") == before
    finally:
        box.exec(["sh", "-c", mend])


@pytest.mark.xdist_group("refusals")
def test_a_typo_in_an_option_of_a_stated_release_is_refused_before_any_connection(
    quiet: tuple[Stack, Host],
) -> None:
    stack, box = quiet
    path = stack.folder / "deployments" / "glm5.yaml"
    text = path.read_text()
    told = "args.atention-backend: is no option of vllm 0.33.0: did you mean attention-backend?"
    try:
        stack.edit("glm5", "  attention-backend:", "  atention-backend:")
        assert f"warning: deployments/glm5.yaml: {told}" in stack.preview().text
        stack.edit("glm5", "engine: vllm", 'engine: vllm\nengine_version: "0.33.0"')
        before = logins(box)
        assert f"error: deployments/glm5.yaml: {told}" in stack.up(fails=True).text
        assert logins(box) == before
        assert serves(box) == MINIMAX.served_names[0]
    finally:
        path.write_text(text)


UNSET = "\nadditions:\n  Service: {UnsetEnvironment: NCCL_P2P_LEVEL}\n"


def test_the_environment_of_every_worker_is_compared_with_the_declared_one(
    five: Stack, box: Host
) -> None:
    five.configure(active="kimi-k25-int4")
    five.up()
    shown = five.outputs()["box"]
    assert "NCCL_PROTO=LL in 8 of 8 processes" in shown["environment"]
    assert "warnings" not in shown
    path = five.folder / "deployments" / "kimi-k25-int4.yaml"
    path.write_text(path.read_text() + UNSET)
    warned = five.up().text
    assert "warning: NCCL_P2P_LEVEL=SYS is missing in pid " in warned
    assert "NCCL_P2P_LEVEL=SYS in 0 of 8 processes" in five.outputs()["box"]["environment"]
    # The unit has to change as well, or nothing is started that could be looked at.
    path.write_text(path.read_text() + "strict_env: true\ncontext: 4096\n")
    failed = five.up(fails=True)
    assert "(strict_env)" in failed.text
    assert "kimi-k25-int4 serves again, verified" in failed.text


def test_a_file_that_sets_a_variable_is_named_where_processes_were_started_without_it(
    five: Stack, box: Host
) -> None:
    unset = UNSET.replace("NCCL_P2P_LEVEL", "NCCL_PROTO")
    path = five.folder / "deployments" / f"{SGLANG}.yaml"
    path.write_text(path.read_text() + unset + "strict_env: true\n")
    five.configure(active=SGLANG)
    five.up()
    told = "NCCL_PROTO=LL in 0 of 8 processes, set by sitecustomize.py in 8, hash ok"
    assert told in five.outputs()["box"]["environment"]


def test_the_runbook_is_on_the_host_and_a_change_in_it_restarts_nothing(
    stack: Stack, box: Host
) -> None:
    box.write("/root/production.md", "by hand\n")
    stack.up()
    beside = "/root/production.cutover.md"
    assert box.read("/root/production.md") == "by hand\n"
    text = box.read(beside)
    assert f"{SGLANG} serves at http://127.0.0.1:8000 since " in text
    assert "- NCCL_PROTO=LL in 8 of 8 processes" in text
    before = unit(box, CATALOGUE[SGLANG].unit, "MainPID")
    stack.edit(SGLANG, "runbook:\n", "runbook:\n  notes: Ask the night shift first.\n")
    assert stack.up().counts == {"updated": 1, "unchanged": 18}
    assert "Ask the night shift first." in box.read(beside)
    assert unit(box, CATALOGUE[SGLANG].unit, "MainPID") == before
    stack.destroy()
    assert box.exec(["ls", beside], check=False).returncode != 0
    assert box.read("/root/production.md") == "by hand\n"


TIMED = """
import resource, subprocess, sys
done = subprocess.run(["cutover", "converge", "--until", "staged"], stdin=open("/root/order.json"))
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print("seconds", used.ru_utime + used.ru_stime)
sys.exit(done.returncode)
"""


@pytest.mark.xdist_group("refusals")
def test_stage_takes_less_than_three_seconds_of_a_processor_with_all_tools_of_the_host(
    quiet: tuple[Stack, Host],
) -> None:
    _, box = quiet
    one = CATALOGUE["kimi-k25-int4"]
    host = load_settings({"active": one.name, "hosts": {"box": settings(box)}}, "f").hosts["box"]
    box.write("/root/order.json", order_for("box", host, one, render_unit(one)).to_json())
    told = box.exec(["python3", "-c", TIMED])
    assert one.name in box.read("/var/lib/cutover/staged.json")
    assert float(told.stdout.split("seconds ")[1]) < 3
    assert serves(box) == MINIMAX.served_names[0]


ANY = """\
description: Any server with an OpenAI-like API
unit: any.service
engine: command
command: [/opt/vllm/bin/python3, -m, vllm.entrypoints.openai.api_server, --model,
  /models/MiniMax-M2.5, --served-model-name, any, --tensor-parallel-size, "8", --port, "8000",
  --host, 0.0.0.0]
checkpoint: /models/MiniMax-M2.5
served_names: [any]
smoke: {expect: Paris, count: 4, concurrency: 2, min_tokens_per_second: 1000000.0}
"""


def test_a_server_of_any_kind_is_a_deployment_and_a_slow_one_is_warned_about(
    serving: Stack, box: Host
) -> None:
    (serving.folder / "deployments" / "any.yaml").write_text(ANY)
    serving.configure(active="any")
    run = serving.up()
    assert serves(box) == "any"
    assert "(4 requests, 2 at once) are below 1e+06" in run.text
    assert "are below" in serving.outputs()["box"]["warnings"][0]
