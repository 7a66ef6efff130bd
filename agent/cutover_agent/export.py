"""`cutover export`: a file for the catalogue from a unit or a server that runs, to start from."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from . import systemd
from .adopt import POLICY
from .arguments import grouped
from .mask import HIDDEN, hide
from .processes import read_process
from .unit_text import Service, Unreadable, read_service

_ENGINES = {"vllm.entrypoints.openai.api_server": "vllm", "sglang.launch_server": "sglang"}
_WANTED = re.compile(r"^(NCCL|CUDA|VLLM|SGLANG|SGL|HF|TORCH|OMP|TRITON|GLOO|PYTORCH)_")
"""Of a process that was started by hand: what else it has came with somebody's login."""
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW", re.I)

_BARE = re.compile(r"/?[A-Za-z][\w./-]*( [\w./-]+)*")
_WORDS = ("true", "false", "yes", "no", "on", "off", "null")

_FIELDS = {
    "model": "checkpoint",
    "model-path": "checkpoint",
    "served-model-name": "served_names",
    "tensor-parallel-size": "gpus",
    "tp-size": "gpus",
    "tp": "gpus",
    "pp": "parallel.pipeline",
    "dp": "parallel.data",
    "pp-size": "parallel.pipeline",
    "dp-size": "parallel.data",
    "host": "listen.host",
    "port": "listen.port",
    "enable-expert-parallel": "parallel.expert",
    "expert-parallel-size": "parallel.expert",
    "ep-size": "parallel.expert",
    "pipeline-parallel-size": "parallel.pipeline",
    "data-parallel-size": "parallel.data",
    "tool-call-parser": "parsers.tool_call",
    "reasoning-parser": "parsers.reasoning",
    "max-model-len": "context",
    "context-length": "context",
    "kv-cache-dtype": "kv_cache_dtype",
    "gpu-memory-utilization": "memory_fraction",
    "mem-fraction-static": "memory_fraction",
    "tokenizer": "tokenizer",
    "tokenizer-path": "tokenizer",
    "hf-config-path": "hf_config",
    "speculative-algorithm": "speculative.algorithm",
    "speculative-draft-model-path": "speculative.draft_checkpoint",
    "speculative-num-steps": "speculative.steps",
    "speculative-eagle-topk": "speculative.topk",
    "speculative-num-draft-tokens": "speculative.draft_tokens",
}


def export(what: str) -> str:
    """YAML from the name of a unit or a pid; Unreadable says why there is none."""
    if what.isdigit():
        return catalogue_file(_of_process(int(what)), f"model-{what}.service")
    unit = what if what.endswith(".service") else f"{what}.service"
    text = systemd.call("cat", unit, check=False)
    if not text:
        raise Unreadable(f"there is no unit {unit}: give the name of a unit or a pid")
    return catalogue_file(read_service(text), unit)


def catalogue_file(service: Service, unit: str) -> str:
    """The file's text; a value that is a secret is left out, its variable listed."""
    program, found = grouped(service.argv)
    options = [option for option in found if HIDDEN not in hide(" ".join(option))]
    value: dict[str, Any] = {"description": f"Taken from {unit}", "unit": unit}
    typed = _typed([(option[0].lstrip("-"), option[1:]) for option in options])
    short = [o[0] for o in options if not o[0].startswith("--") and o[0][1:] not in _FIELDS]
    engine = _ENGINES.get(program[2]) if len(program) == 3 and program[1] == "-m" else None
    if engine and not short:
        value.update(engine=engine, python=program[0], **typed)
    else:
        value.update(engine="command", command=[*program, *(w for o in options for w in o)])
        model = program[2] if program[1:2] == ("serve",) and len(program) > 2 else "/models/FIXME"
        value.update(checkpoint=typed.get("checkpoint", model), gpus=typed["gpus"])
        value.update({name: typed[name] for name in ("listen", "served_names") if name in typed})
    # What both engines call a model that was given no name.
    value.setdefault("served_names", [value.get("checkpoint", "FIXME")])
    names = [name for name in service.variables if name not in POLICY]
    secrets = [name for name in names if _SECRET.search(name)]
    if engine and not short and "--api-key" in (option[0] for option in found):
        secrets.append(f"{engine.upper()}_API_KEY")
    value["env"] = {name: service.variables[name] for name in names if name not in secrets}
    value.update(secrets=secrets, user=service.user)
    if service.folder != "/":
        value["working_directory"] = service.folder
    note = "# Taken from the host by `cutover export`: read it through before you use it.\n"
    return note + _yaml({name: each for name, each in value.items() if each not in ({}, [])})


def _typed(options: list[tuple[str, tuple[str, ...]]]) -> dict[str, Any]:
    """The fields that stand for these options; without a word about GPUs an engine takes one."""
    value: dict[str, Any] = {"gpus": 1}
    args: dict[str, Any] = {}
    for name, given in options:
        field = _FIELDS.get(name)
        if field is None:
            args[name] = True if not given else _plain(given[0]) if len(given) == 1 else list(given)
        elif field == "served_names":
            value[field] = list(given)
        elif "." in field:
            outer, _, inner = field.partition(".")
            whole = True if inner == "expert" or not given else _plain(given[0])
            value.setdefault(outer, {})[inner] = whole
        else:
            value[field] = _plain(given[0])
    ranks = value.get("parallel", {})
    groups = 1 if "enable-dp-attention" in args else ranks.get("data", 1)
    return {**value, "gpus": value["gpus"] * ranks.get("pipeline", 1) * groups, "args": args}


def _plain(text: str) -> Any:
    """A number where the text is exactly one."""
    try:
        number = json.loads(text)
    except ValueError:
        return text
    return number if type(number) in (int, float) and str(number) == text else text


def _of_process(pid: int) -> Service:
    process = read_process(pid)
    if process is None:
        raise Unreadable(f"there is no process {pid}")
    try:
        folder = str(Path(f"/proc/{pid}/cwd").resolve())
        raw = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    except OSError as problem:
        raise Unreadable(f"pid {pid} cannot be read: {problem.strerror}") from None
    pairs = (entry.partition("=") for entry in raw.split("\0") if "=" in entry)
    found = {name: text for name, _, text in pairs if _WANTED.match(name)}
    return Service(process.argv, process.user, folder, found, ())


def _yaml(value: Any, indent: str = "") -> str:
    """Mappings a line each, everything else as JSON, which YAML holds."""
    lines = []
    for name, each in value.items():
        if isinstance(each, dict):
            lines.append(f"{indent}{name}:\n{_yaml(each, indent + '  ')}")
        else:
            lines.append(f"{indent}{name}: {_scalar(each)}\n")
    return "".join(lines)


def _scalar(each: Any) -> str:
    if isinstance(each, str) and _BARE.fullmatch(each) and each.lower() not in _WORDS:
        return each
    return json.dumps(each, ensure_ascii=False)
