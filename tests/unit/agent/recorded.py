"""Titles and command lines as the programs' own sources and logs show them.

Text recorded by reading: vLLM's and SGLang's calls of setproctitle, `ps` and nvidia-smi output in
reports of their users, the start commands of their documentation. Independent of the policy.
"""

from __future__ import annotations

Argv = tuple[str, ...]

SERVERS: tuple[Argv, ...] = (
    ("python3", "-m", "vllm.entrypoints.openai.api_server", "--model", "/models/glm5"),
    ("/usr/bin/python3", "/usr/local/bin/vllm", "serve", "Qwen/Qwen3-14B", "--port", "8000"),
    ("/opt/conda/envs/vllm/bin/python3.12", "/opt/conda/envs/vllm/bin/vllm", "serve", "/m/x"),
    ("python", "-m", "vllm.entrypoints.cli.main", "serve", "/models/minimax"),
    ("python3", "-u", "-m", "vllm.entrypoints.api_server", "--model", "facebook/opt-125m"),
    ("python3", "-m", "sglang.launch_server", "--model-path", "/models/kimi", "--tp", "8"),
    ("/sgl/bin/python", "-X", "faulthandler", "-m", "sglang.launch_server", "--port", "30000"),
    ("/opt/venv/bin/python3", "/opt/venv/bin/sglang", "serve", "--model-path", "/models/kimi"),
)
CORES: tuple[str, ...] = (
    "VLLM::EngineCore",
    "VLLM::EngineCore_DP0",
    "VLLM::APIServer_0",
    "sglang::data_parallel_controller",
)
WORKERS: tuple[str, ...] = (
    "VLLM::Worker",
    "VLLM::Worker_TP0",
    "VLLM::Worker_TP7",
    "VLLM::Worker_PP0_TP1",
    "VLLM::Worker_DP0_TP1_EP1",
    "sglang::scheduler",
    "sglang::scheduler_TP0",
    "sglang::scheduler_DP0_TP0_EP0",
    "sglang::scheduler_PP1_TP3",
    "ray::RayWorkerWrapper.execute_method",
    "ray::RayWorkerWrapper.__ray_call__",
)
KERNELS: tuple[Argv, ...] = (
    ("/opt/conda/bin/python", "-m", "ipykernel_launcher", "-f", "/run/user/0/kernel-1f.json"),
    ("/usr/bin/python3", "-Xfrozen_modules=off", "-m", "ipykernel_launcher", "-f", "k.json"),
    ("/usr/bin/python3", "-m", "colab_kernel_launcher", "-f", "/root/kernel.json"),
)
STRANGERS: tuple[Argv, ...] = (
    ("python3", "train.py", "--config", "vllm.yaml"),
    ("/usr/bin/python3", "-m", "torch.distributed.run", "--nproc-per-node=8", "train.py"),
    ("/usr/local/bin/ollama", "runner", "--model", "/root/.ollama/blob"),
    ("./llama-server", "-m", "/models/glm5.gguf", "-ngl", "99"),
    ("/usr/bin/blender", "-b", "scene.blend"),
    ("ray::TrainWorker.fit",),
    ("/opt/vllm/bin/python3", "/opt/vllm/bin/vllm", "bench", "throughput", "--model", "m"),
    ("python3", "-c", "from multiprocessing.spawn import spawn_main; spawn_main()"),
)
PROTECTED: tuple[Argv, ...] = (
    ("/usr/lib/xorg/Xorg", "vt2", "-displayfd", "3"),
    ("/usr/bin/gnome-shell",),
    ("/usr/bin/nvidia-persistenced", "--user", "nvidia-persistenced"),
    ("nvidia-cuda-mps-server",),
    ("/usr/bin/nv-hostengine", "-n", "--service-account", "nvidia-dcgm"),
    ("/usr/bin/dcgm-exporter", "-f", "/etc/dcgm-exporter/default-counters.csv"),
    ("/usr/local/bin/nvidia_gpu_exporter",),
    ("nvidia-smi", "dmon"),
    ("/usr/bin/python3", "/usr/local/bin/nvitop"),
)
LOOK_ALIKES: tuple[Argv, ...] = (
    ("vim", "vllm-notes"),
    ("tail", "-f", "/var/log/vllm.log"),
    ("bash", "-c", "pkill -f 'vllm serve'"),
    ("ssh", "box2", "vllm", "serve", "/models/glm5"),
    ("journalctl", "-fu", "sglang-kimi.service"),
    ("curl", "http://127.0.0.1:8000/v1/models"),
    ("python3", "client.py", "--engine", "sglang.launch_server"),
)
CONTAINERS: tuple[str, ...] = (
    "/system.slice/docker-4f3c9a1b2d5e4f3c9a1b2d5e.scope",
    "/docker/4f3c9a1b2d5e4f3c9a1b2d5e",
    "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1f.slice/cri-containerd-9a.scope",
    "/machine.slice/libpod-77aa.scope",
    "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-9a1b.scope/container",
    "/lxc.payload.train/system.slice/vllm.service",
)
DOORS: tuple[tuple[str, Argv], ...] = (
    ("ssh.service", ("sshd: /usr/sbin/sshd -D [listener] 0 of 10-100 startups",)),
    ("cron.service", ("/usr/sbin/cron", "-f", "-P")),
    (
        "jupyter.service",
        ("/opt/jupyter/bin/python3", "/opt/jupyter/bin/jupyter-lab", "--no-browser"),
    ),
    ("tmux.service", ("tmux", "new-session", "-d", "-s", "work")),
)
