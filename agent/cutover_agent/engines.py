"""How inference servers, their workers, notebooks and the driver's own programs look."""

from __future__ import annotations

import re

from .processes import Process

# What the engines write over their command lines; Linux keeps 15 letters of it as the short name.
_TITLE = re.compile(
    r"(VLLM::|sglang::|sgl_diffusion::"
    r"|ray::(RayWorker|vllm|VLLM|EngineCore|SGLang|sglang|SchedulerActor|LLMServer|LLMRayServer))"
)
_RAY = re.compile(r"ray::IDLE\b")
_SERVER_MODULE = re.compile(
    r"(vllm\.entrypoints\.(?!cli|bench)\S*|vllm\.v1\.engine\S*"
    r"|sglang\.(launch_server|srt\.\S+|multimodal_gen\S*)|sglang\.launch_server_\w+)"
)
_CLI = {"vllm": ("serve", "launch"), "sglang": ("serve",)}
"""Programs, and the commands with which they serve; others bench or chat."""

_CLI_MODULES = {
    "vllm": "vllm", "vllm.entrypoints.cli.main": "vllm", "sglang": "sglang", "sglang.cli": "sglang",
    "sglang.cli.main": "sglang",
}  # fmt: skip

_PYTHON_TAKES_A_WORD = ("-X", "-W", "--check-hash-based-pycs")

_KERNEL_MODULE = re.compile(r"(ipykernel|ipykernel_launcher|colab_kernel_launcher|xpython|marimo)")
_LAUNCHERS = ("sh", "bash", "dash", "zsh", "conda", "mamba", "micromamba", "uv", "env",
              "numactl", "tini", "dumb-init", "sudo", "nohup", "setsid", "timeout")  # fmt: skip

_DOORS = re.compile(
    r"(sshd(-session)?|dropbear|cron|crond|CRON|atd|login|systemd|tmux(: server)?|screen|SCREEN"
    r"|code-server|ttyd|xrdp\S*|jupyter\S*|gdm\S*)"
)
"""Services through which people start things that are not their own."""

PROTECTED = (
    # persistence, fabric, MPS and the rest of the driver
    "nvidia-persistenced", "nvidia-persiste", "nv-fabricmanager", "nv-fabricmanage",
    "nvidia-fabricmanager", "nvidia-imex", "nvidia-powerd", "nvidia-cuda-mps-control",
    "nvidia-cuda-mps-server", "nvidia-cuda-mps", "nvidia-smi",
    # DCGM, exporters, monitors
    "nv-hostengine", "dcgm", "dcgmi", "dcgm-exporter", "dcgm_exporter", "nvidia_gpu_exporter",
    "nvidia_gpu_expo", "nvidia_smi_exporter", "nvidia_smi_expo", "prometheus-dcgm", "node_exporter",
    "nvtop", "nvitop", "gpustat", "netdata", "telegraf", "datadog-agent",
    # display servers and compositors
    "X", "Xorg", "Xwayland", "gnome-shell", "kwin_wayland", "kwin_x11", "mutter", "weston", "sway",
    "gdm3", "gdm-x-session", "gdm-wayland-session", "sddm", "lightdm", "plasmashell",
    # how people come in
    "sshd", "sshd-session", "login", "systemd", "systemd-logind",
)  # fmt: skip
"""Programs that a release never signals, by the name of the program or the kernel's short one."""
MPS = ("nvidia-cuda-mps-control", "nvidia-cuda-mps-server", "nvidia-cuda-mps")
DISPLAYS = PROTECTED[PROTECTED.index("X") : PROTECTED.index("sshd")]


def is_engine(process: Process) -> bool:
    """Whether a process is an inference server or one of its named workers.

    A worker's title replaces its command line; a server is known by the module or program it was
    started as, never by a word somewhere in its arguments.
    """
    if not process.argv:
        return bool(_TITLE.match(process.name))
    if _TITLE.match(process.argv[0]):
        return True
    program, module, script, rest = started_as(process.argv)
    if module in _CLI_MODULES:
        program, module = _CLI_MODULES[module], ""
    if module:
        return bool(_SERVER_MODULE.fullmatch(module)) and not _asks_for_help(rest)
    name = script or program
    return any(word in _CLI.get(name, ()) for word in rest[:1])


def _asks_for_help(words: tuple[str, ...]) -> bool:
    return words[:1] in (("--help",), ("-h",))


def is_ray(process: Process) -> bool:
    """Whether it is a worker of Ray that waits, and nobody can say what it worked on."""
    return bool(_RAY.match(process.argv[0] if process.argv else process.name))


def is_kernel(process: Process) -> bool:
    """Whether it is a live notebook kernel."""
    if process.dead or not process.argv:
        return False
    _, module, script, _ = started_as(process.argv)
    return bool(_KERNEL_MODULE.match(module) or _KERNEL_MODULE.match(script))


def is_launcher(process: Process) -> bool:
    """Whether it only starts and waits for other programs: a shell, or an environment's wrapper."""
    program, _, script, _ = started_as(process.argv)
    return program in _LAUNCHERS or script in _LAUNCHERS


def is_door(process: Process) -> bool:
    """Whether people come in through it: what they start sits in its unit, but is not its own."""
    program, module, script, _ = started_as(process.argv)
    names = (process.name, program, module, script)
    return any(_DOORS.fullmatch(name) for name in names)


def is_protected(process: Process) -> bool:
    """Whether a process belongs to the driver, a display, a monitor or a login."""
    return not is_engine(process) and bool(_names(process) & set(PROTECTED))


def is_mps(process: Process) -> bool:
    """Whether it is CUDA's multi-process service."""
    return bool(_names(process) & set(MPS))


def is_display(process: Process) -> bool:
    """Whether it draws a screen."""
    return bool(_names(process) & set(DISPLAYS))


def _names(process: Process) -> set[str]:
    """What a process calls itself: its program, its script, its short name."""
    program, _, script, _ = started_as(process.argv)
    return {process.name, program, script.removesuffix(".py")}


def started_as(argv: tuple[str, ...]) -> tuple[str, str, str, tuple[str, ...]]:
    """Program, Python module, Python script, and the words behind them; empty where there is none.

    A title of one element is taken apart at its blanks.
    """
    words = argv if len(argv) > 1 else tuple(" ".join(argv).split())
    if not words:
        return "", "", "", ()
    program = words[0].rpartition("/")[2].lstrip("-").rstrip(":")
    if not re.fullmatch(r"(python|pypy)[\d.]*t?", program):
        return program, "", "", words[1:]
    position = 1
    while position < len(words):
        word = words[position]
        if word.startswith("-m"):
            name = word[2:] or " ".join(words[position + 1 : position + 2])
            return program, name, "", words[position + (1 if word[2:] else 2) :]
        if word == "-c" or not word.startswith("-") or word == "-":
            script = "" if word.startswith("-") else word.rpartition("/")[2]
            return program, "", script, words[position + 1 :]
        # Short flags may be joined, as in -um.
        if re.fullmatch(r"-[a-zA-Z]*m", word):
            return program, " ".join(words[position + 1 : position + 2]), "", words[position + 2 :]
        position += 2 if word in _PYTHON_TAKES_A_WORD else 1
    return program, "", "", ()
