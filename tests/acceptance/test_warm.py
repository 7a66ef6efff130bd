"""Before the stop: weights are read ahead, and requests in flight come to their end."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import urllib.request
from pathlib import Path
from typing import Any

from bench.growth import Growth
from cutover_agent.prefetch import CHUNK as BLOCK
from sandbox import Host
from tests.acceptance.stack import MODELS, SGLANG, VLLM, Stack, serves, settings

FOLDER = "/models/MiniMax-M2.5"
MIB_PER_SECOND = 16
CACHE = "/root/.cache/vllm/torch_compile_cache/rank_0_0"
TOKENS = 400

# A checkpoint of 48 MiB on the host's disk, of which nothing is in memory.
GROW = f"""
import json, os, struct, pathlib
folder = pathlib.Path("{FOLDER}")
for old in folder.glob("*.safetensors"): old.unlink()
names = ["model-%05d-of-00012.safetensors" % n for n in range(1, 13)]
size, weights = 4 << 20, {{}}
for name in names:
    entry = {{"dtype": "BF16", "shape": [size // 2], "data_offsets": [0, size]}}
    head = json.dumps({{name: entry}})
    head = head.encode() + b" " * (-len(head) % 8)
    with open(folder / name, "wb") as file:
        file.write(struct.pack("<Q", len(head)) + head + os.urandom(size))
        file.flush(); os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    weights[name] = name
(folder / "model.safetensors.index.json").write_text(json.dumps({{"weight_map": weights}}))
"""


def in_memory(files: list[Path]) -> int:
    """Bytes of these files, as a tool says that is not ours."""
    command = ["fincore", "--bytes", "--noheadings", "--output", "RES", *map(str, files)]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return sum(map(int, shown.split()))


def long_answer(host: Host, words: list[str]) -> None:
    """Asks for an answer that takes a while, and keeps its words as they come."""
    body = {"model": MODELS[VLLM], "prompt": "go on", "max_tokens": TOKENS, "stream": True}
    asked = urllib.request.Request(
        f"http://{host.address}:8000/v1/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(asked, timeout=120) as answer:
        words += [line.decode() for line in answer if line.startswith(b"data:")]


def test_a_switch_reads_ahead_at_its_pace_keeps_compile_caches_and_lets_requests_end(
    serving: Stack, box: Host
) -> None:
    box.exec(["python3", "-c", GROW])
    box.exec(["mkdir", "-p", CACHE])
    box.write(f"{CACHE}/model", "compiled")
    slow = {"token_seconds": 0.05}
    box.write("/etc/practice/engine.json", json.dumps({"models": {MODELS[VLLM]: slow}}))
    serving.configure(active=VLLM, hosts={"box": settings(box, warm_mib_per_second=MIB_PER_SECOND)})
    shards = sorted((box.folder / f"disk/upper{FOLDER}").glob("*-of-00012.safetensors"))
    with Growth(shards) as growth:
        run = serving.up()
    most = growth.most(1.0)
    assert most <= (MIB_PER_SECOND << 20) + 2 * BLOCK, "one for the pace, one for a slow disk"
    whole = sum(shard.stat().st_size for shard in shards)
    assert growth.whole >= 0.95 * whole, "nothing of it was in memory before"
    assert in_memory(shards) >= 0.95 * whole
    assert serves(box) == MODELS[VLLM]
    shown = serving.outputs()["box"]
    assert shown["warm"] == "100 % of 50 MB in memory"
    assert shown["warm_percent"] >= 95
    assert f"{VLLM}: 100 % of 50 MB in memory" in run.text
    figures = transaction(box)["evidence"]["warm"]
    read = 12 * (4 << 20)
    assert figures["read_bytes"] >= read, "all of it came from the disk"
    assert box.read(f"{CACHE}/model") == "compiled"

    words: list[str] = []
    request = threading.Thread(target=long_answer, args=(box, words))
    serving.configure(active=SGLANG)
    serving.edit(SGLANG, "engine: sglang\n", "engine: sglang\nwarm: off\n")
    request.start()
    run = serving.up()
    request.join()
    assert len(words) == TOKENS + 1, "the answer came whole"
    assert re.search(r"1 requests in flight get up to 30 s", run.text), run.text
    assert transaction(box)["evidence"]["phases"]["drain"] > 1
    shown = serving.outputs()["box"]
    assert serves(box) == MODELS[SGLANG] and "warm" not in shown
    assert 0 < shown["gap_seconds"] <= 1.0, shown["phases"]
    assert box.read(f"{CACHE}/model") == "compiled"
    on_a_terminal = box.exec(["script", "-qc", "stty cols 90; cutover log", "/dev/null"]).stdout
    assert re.search(r"^    weights +\d+\.\d s  #+\s*$", on_a_terminal, re.M)
    assert "#" not in box.exec(["cutover", "log"]).stdout


def transaction(box: Host) -> dict[str, Any]:
    """The newest transaction's record."""
    names = box.exec(["ls", "/var/lib/cutover/transactions"]).stdout.split()
    path = Path("/var/lib/cutover/transactions") / max(names) / "state.json"
    return dict(json.loads(box.read(str(path))))
