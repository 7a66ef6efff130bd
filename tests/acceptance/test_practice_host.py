from __future__ import annotations

import json
import shlex
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox import Host, SandboxError, cgroups, find, keys, start

pytestmark = pytest.mark.practice_host

VLLM = shlex.split(
    "/opt/vllm/bin/python3 -m vllm.entrypoints.openai.api_server --model /models/MiniMax-M2.5 "
    "--served-model-name minimax-m25 --host 0.0.0.0 --port 8000 --tensor-parallel-size 8 "
    "--reasoning-parser minimax_m2 --enable-auto-tool-choice"
)
SGLANG = shlex.split(
    "/opt/sglang/bin/python3 -m sglang.launch_server --model-path /models/Kimi-K2.5-INT4 --tp 8 "
    "--served-model-name kimi --host 0.0.0.0 --port 8000 --api-key sesame "
    "--speculative-draft-model-path /models/Kimi-K2.5-EAGLE3"
)
QUESTION = {
    "model": "minimax-m25",
    "messages": [{"role": "user", "content": "What is the capital of France?"}],
    "max_tokens": 64,
}


@pytest.fixture(scope="module")
def host(worker_id: str) -> Iterator[Host]:
    with start(f"practice-{worker_id}") as one:
        yield one


@pytest.fixture
def box(host: Host) -> Iterator[Host]:
    """The shared host, with nothing left of the test before."""
    yield host
    for verb in ("kill -s KILL", "stop"):  # only a stop waits for the end
        host.exec(["sh", "-c", f"systemctl {verb} model hold"], check=False)
    host.exec(["systemctl", "reset-failed"])
    host.exec(["sh", "-c", "pkill -KILL -f '^VLLM::'; rm -f /dev/shm/* /tmp/*-*"], check=False)
    host.write("/etc/practice/gpu.json", '{"count": 8}')
    host.write("/etc/practice/engine.json", "{}")
    until(lambda: used(host) == [0] * 8)


def until(reached: Callable[[], Any], seconds: float = 15) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, "it did not come to that in time"
        time.sleep(0.05)


def used(host: Host) -> list[int]:
    query = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    return [int(line) for line in host.exec(query).stdout.split()]


def smi(host: Host, *arguments: str) -> tuple[int, str]:
    done = host.exec(["nvidia-smi", *arguments], check=False)
    return done.returncode, done.stdout


def run(host: Host, command: list[str], unit: str = "model") -> None:
    host.exec(["systemd-run", "--quiet", f"--unit={unit}", "-p", "KillMode=mixed", *command])


def behave(host: Host, **keys: object) -> None:
    host.write("/etc/practice/engine.json", json.dumps(keys))


def journal(host: Host) -> str:
    return host.exec(["journalctl", "-u", "model", "-o", "cat", "--no-pager"]).stdout


def state(host: Host) -> str:
    return host.exec(["systemctl", "show", "-P", "ActiveState", "model"]).stdout.strip()


def request(
    host: Host, path: str, body: object = None, key: str = "", timeout: float = 10
) -> tuple[int, Any]:
    """Status and JSON of an answer; status 0 where there is none."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(f"http://{host.address}:8000{path}", data, headers)
    try:
        with urllib.request.urlopen(asked, timeout=timeout) as answer:
            text = answer.read()
            return answer.status, json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        text = error.read()
        return error.code, json.loads(text) if text else None
    except OSError:
        return 0, None


def serves(host: Host) -> bool:
    return request(host, "/health")[0] == 200


def shared_memory(host: Host) -> list[str]:
    return host.exec(["ls", "/dev/shm"]).stdout.split()


def test_both_users_come_in_by_key_and_operator_becomes_root_without_a_password(box: Host) -> None:
    assert box.ssh("id -un").stdout == "root\n"
    assert box.ssh("id -un; sudo -n id -un", user="operator").stdout == "operator\nroot\n"


def test_a_server_with_another_host_key_is_refused(box: Host) -> None:
    known = box.folder / "known_hosts"
    right = known.read_text()
    try:
        other = keys.public_line(box.key_path)
        known.write_text(f"{box.address} {other}\n")
        assert box.ssh("true").returncode == 255
    finally:
        known.write_text(right)
    assert box.ssh("true").returncode == 0


def test_systemd_verifies_units_and_nothing_failed_at_boot(box: Host) -> None:
    assert box.exec(["systemctl", "is-system-running"]).stdout == "running\n"
    box.write("/root/good.service", "[Service]\nExecStart=/bin/true\n")
    box.write("/root/bad.service", "[Service]\nExecStart=/bin/none\n")
    verify = ["systemd-analyze", "verify"]
    assert box.exec([*verify, "good.service"], check=False).returncode == 0
    assert box.exec([*verify, "bad.service"], check=False).returncode != 0


def test_nvidia_smi_prints_csv_as_the_real_one_does(box: Host) -> None:
    query = "--query-gpu=index,memory.used,utilization.gpu"
    assert smi(box, query, "--format=csv", "-i", "3") == (
        0,
        "index, memory.used [MiB], utilization.gpu [%]\n3, 0 MiB, 0 %\n",
    )
    assert smi(box, query, "--format=csv,noheader,nounits", "-i", "3") == (0, "3, 0, 0\n")
    assert smi(box, "--query-gpu=index,nosuch", "--format=csv") == (
        2,
        'Field "nosuch" is not a valid field to query.\n\n',
    )
    assert smi(box, "-i", "9", "--query-gpu=index") == (6, "No devices were found\n")


def test_gpu_json_makes_nvidia_smi_slow_lost_dirty_or_broken(box: Host) -> None:
    rows = ["--query-gpu=index,memory.used", "--format=csv,noheader,nounits"]
    gpu = {"count": 4, "missing": [2], "idle_mib": {"0": 15}, "delay_seconds": 0.5}
    box.write("/etc/practice/gpu.json", json.dumps(gpu))
    began = time.monotonic()
    status, text = smi(box, *rows)
    assert time.monotonic() - began >= 0.5
    lost = "Unable to determine the device handle for GPU0000:38:00.0: Unknown Error"
    assert (status, text.splitlines()) == (15, [lost, "0, 15", "1, 0", "3, 0"])
    fake = {"stdout": "Failed to initialize NVML: Driver/library version mismatch\n"}
    gpu = {"count": 8, "fake": {**fake, "exit_code": 18}}
    box.write("/etc/practice/gpu.json", json.dumps(gpu))
    assert smi(box, *rows) == (18, fake["stdout"])


def test_a_process_holds_gpu_memory_for_every_user_to_see_until_it_ends(box: Host) -> None:
    run(box, ["gpu-hold", "--gpu", "5", "--mib", "1024", "--title", "jupyter"], unit="hold")
    until(lambda: used(box) == [0, 0, 0, 0, 0, 1024, 0, 0])
    query = "--query-compute-apps=process_name,used_memory"
    assert smi(box, query, "--format=csv,noheader") == (0, "jupyter, 1024 MiB\n")
    command = "nvidia-smi -i 5 --query-gpu=memory.used --format=csv,noheader"
    assert box.ssh(command, user="operator").stdout == "1024 MiB\n"
    box.write("/etc/practice/gpu.json", '{"count": 8, "compute_apps": "hidden"}')
    assert smi(box, query, "--format=csv,noheader") == (0, "")
    box.exec(["systemctl", "kill", "-s", "KILL", "hold"])
    until(lambda: used(box) == [0] * 8, seconds=2)


def test_vllm_loads_shards_serves_thinks_and_leaves_nothing_when_stopped(box: Host) -> None:
    run(box, VLLM)
    until(lambda: serves(box))
    assert used(box) == [72500] * 8
    assert request(box, "/v1/models")[1]["data"][0]["id"] == "minimax-m25"
    answer = request(box, "/v1/chat/completions", QUESTION)[1]
    message = answer["choices"][0]["message"]
    assert message["content"] == "Paris" and "capital" in message["reasoning"]
    assert answer["usage"]["completion_tokens"] > 1
    assert request(box, "/v1/chat/completions", {**QUESTION, "model": "other"})[0] == 404
    assert "Loading safetensors checkpoint shards: 100% Completed | 126/126 [" in journal(box)
    apps = smi(box, "--query-compute-apps=process_name", "--format=csv,noheader")[1]
    assert apps.split() == [f"VLLM::Worker_TP{rank}" for rank in range(8)]
    kinds = {name[: len(name) - 8] for name in shared_memory(box)}
    assert kinds == {"psm_", "nccl-", "sem.mp-"}
    box.exec(["systemctl", "stop", "model"])
    assert used(box) == [0] * 8 and shared_memory(box) == []


def test_sglang_wants_its_api_key_and_reads_its_draft_model(box: Host) -> None:
    run(box, SGLANG)
    until(lambda: serves(box))
    assert request(box, "/v1/models")[0] == 401
    assert request(box, "/v1/models", key="sesame")[0] == 200
    assert "| 65/65 [" in journal(box)
    titles = box.exec(["ps", "-eo", "args"]).stdout
    assert "sglang::scheduler_TP7" in titles and "sglang::detokenizer" in titles


def test_killing_the_main_process_leaves_orphans_that_hold_memory_but_not_the_port(
    box: Host,
) -> None:
    box.ssh(f"SPT_NOENV=1 nohup {' '.join(VLLM)} >/tmp/server-log 2>&1 </dev/null &")
    until(lambda: serves(box))
    box.exec(["pkill", "-KILL", "-f", "^/opt/vllm/bin/python3 -m vllm"])
    until(lambda: not serves(box))
    assert used(box) == [72500] * 8
    assert shared_memory(box) != []
    box.exec(["pkill", "-KILL", "-f", "^VLLM::"])
    until(lambda: used(box) == [0] * 8, seconds=2)
    run(box, VLLM)
    until(lambda: serves(box))


def test_one_dead_worker_ends_the_whole_engine(box: Host) -> None:
    run(box, VLLM)
    until(lambda: serves(box))
    box.exec(["pkill", "-KILL", "-f", "^VLLM::Worker_TP3"])
    until(lambda: state(box) == "failed")
    assert used(box) == [0] * 8


@pytest.mark.parametrize("command", [VLLM, SGLANG], ids=["vllm", "sglang"])
def test_a_crash_while_loading_says_out_of_memory_and_frees_the_gpus(
    box: Host, command: list[str]
) -> None:
    behave(box, crash="loading")
    run(box, command)
    until(lambda: state(box) == "failed")
    said = journal(box)
    assert "torch.OutOfMemoryError: CUDA out of memory." in said
    assert "Traceback (most recent call last):" in said
    assert used(box) == [0] * 8


def test_a_missing_shard_crashes_the_engine_with_its_name(box: Host) -> None:
    shard = "model-00037-of-00126.safetensors"
    box.exec(["mv", f"/models/MiniMax-M2.5/{shard}", "/root/"])
    try:
        run(box, VLLM)
        until(lambda: state(box) == "failed")
        said = f"No such file or directory: '/models/MiniMax-M2.5/{shard}'"
        assert f"FileNotFoundError: [Errno 2] {said}" in journal(box)
    finally:
        box.exec(["mv", f"/root/{shard}", "/models/MiniMax-M2.5/"])


def test_a_hang_while_loading_keeps_memory_and_never_listens(box: Host) -> None:
    behave(box, models={"minimax-m25": {"hang": "loading"}}, load_seconds=0.3)
    run(box, VLLM)
    until(lambda: used(box)[1] == 72500)
    assert state(box) == "active" and not serves(box)
    assert 600 < used(box)[0] < 72500
    box.exec(["systemctl", "stop", "model"])
    assert used(box) == [0] * 8


def test_an_engine_does_not_start_beside_another_holder(box: Host) -> None:
    run(box, ["gpu-hold", "--gpu", "2", "--mib", "40000"], unit="hold")
    until(lambda: used(box)[2] == 40000)
    run(box, VLLM)
    until(lambda: state(box) == "failed")
    assert "Free memory on device cuda:2" in journal(box)


def test_stopping_can_be_slow_or_take_a_kill(box: Host) -> None:
    behave(box, load_seconds=0.1, stop_seconds=0.8)
    run(box, VLLM)
    until(lambda: serves(box))
    began = time.monotonic()
    box.exec(["systemctl", "stop", "model"])
    assert 0.8 <= time.monotonic() - began < 5
    behave(box, load_seconds=0.1, ignore_term=True)
    run(box, ["-p", "TimeoutStopSec=1", *VLLM])
    until(lambda: serves(box))
    box.exec(["systemctl", "stop", "model"])
    assert state(box) == "failed" and used(box) == [0] * 8


def test_an_engine_can_serve_badly(box: Host) -> None:
    behave(box, load_seconds=0.1, answer="Lyon", served_as="other", health_status=503)
    run(box, VLLM)
    until(lambda: request(box, "/health")[0] == 503)
    said = request(box, "/v1/chat/completions", {**QUESTION, "model": "other"})[1]
    assert said["choices"][0]["message"]["content"] == "Lyon"


def test_two_hosts_stand_side_by_side_and_stopping_one_leaves_nothing(
    box: Host, worker_id: str
) -> None:
    with start(f"second-{worker_id}", gpus=2) as second:
        assert second.address != box.address and second.host_key != box.host_key
        run(second, ["gpu-hold", "--gpu", "1"], unit="hold")
        until(lambda: used(second) == [0, 1024])
        assert used(box) == [0] * 8
        assert find(second.name).address == second.address
        with pytest.raises(SandboxError, match="exists already"):
            start(second.name)
        inside = cgroups.members(second.group)
        assert len(inside) > 3
    assert not second.folder.exists()
    assert not any(Path(f"/proc/{pid}").exists() for pid in inside)
    assert not any((hierarchy / second.group).exists() for hierarchy in cgroups.hierarchies())
    assert second.name not in Path("/proc/self/mounts").read_text()
    processes = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    assert str(second.folder) not in processes
    assert box.ssh("true").returncode == 0


def test_a_power_cut_keeps_the_disk_a_reboot_comes_back_and_a_rewind_forgets(
    worker_id: str,
) -> None:
    with start(f"power-{worker_id}") as one:
        one.write("/root/note", "kept")
        one.exec(["rm", "/etc/debian_version"])
        first = one.read("/proc/sys/kernel/random/boot_id")
        one.shut_down()
        one.save_disk()
        one.boot()
        one.power_off()
        assert one.state == "off"
        one.boot()
        second = one.read("/proc/sys/kernel/random/boot_id")
        assert one.read("/root/note") == "kept" and first != second
        one.exec(["systemctl", "reboot"])
        until(lambda: one.state == "up" and _boot_id(one) not in ("", second))
        one.write("/root/note", "overwritten")
        one.write("/etc/debian_version", "back")
        one.rewind()
        assert one.read("/root/note") == "kept"
        assert one.exec(["test", "-e", "/etc/debian_version"], check=False).returncode == 1


def _boot_id(host: Host) -> str:
    return host.ssh("cat /proc/sys/kernel/random/boot_id").stdout


def test_a_start_that_fails_half_way_leaves_nothing(
    worker_id: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(self: Host) -> None:
        raise SandboxError("no boot")

    monkeypatch.setattr(Host, "boot", broken)
    with pytest.raises(SandboxError, match="no boot"):
        start("half", state=tmp_path)
    assert not (tmp_path / "half").exists()
    processes = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    assert str(tmp_path) not in processes


def test_the_command_line_starts_lists_enters_and_stops(worker_id: str) -> None:
    name = f"cli-{worker_id}"
    cli(["start", name, "--gpus", "1"])
    try:
        assert cli(["enter", name, "cat", "/etc/hostname"]) == f"{name}\n"
        assert f"{name}\t127.77.0." in cli(["list"])
    finally:
        cli(["stop", name])
    assert name not in cli(["list"])


def cli(arguments: list[str]) -> str:
    program = Path(__file__).parents[2] / "dev/sandbox"
    command = ["python3", str(program), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
