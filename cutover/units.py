"""The files of a deployment on a host: its unit, and the environment file of its secrets.

What an operator wrote reaches the templates only as finished lines, never as template source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from cutover.additions import addition_lines
from cutover.command import command_lines
from cutover.contradictions import READY_TIMEOUT
from cutover.deployment import Deployment
from cutover.quoting import assignment, environment_file_line, exec_argument, path_word, raw_line
from cutover.templating import render

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
EVERY_GPU = tuple(range(8))
"""What a host has as a rule; a deployment that fills these is left to see what there is."""
START_LIMIT_BURST = 3
START_LIMIT_MARGIN = 60
"""Seconds on top, for starts and stops that take a little longer than they may."""


@dataclass(frozen=True)
class Rendered:
    """A deployment and the texts of its files, which are the same on every host."""

    deployment: Deployment
    unit_text: str
    environment_text: str
    """Holds the deployment's secrets."""


def render_files(deployment: Deployment, secrets: Mapping[str, str]) -> Rendered:
    """A deployment with the texts of its files."""
    return Rendered(deployment, render_unit(deployment), render_environment(deployment, secrets))


def render_unit(deployment: Deployment) -> str:
    """The text of the deployment's unit file."""
    paths = [
        deployment.checkpoint,
        deployment.draft_checkpoint,
        deployment.tokenizer,
        deployment.hf_config,
        deployment.mount,
    ]
    mounts = dict.fromkeys(path for path in paths if path)
    directory = deployment.working_directory
    return render(
        "unit.service.j2",
        name=deployment.name,
        description=f"Description={raw_line(deployment.description)}",
        mounts=[f"RequiresMountsFor={path_word(path)}" for path in mounts],
        start_limit_interval=start_limit_interval(deployment),
        start_limit_burst=START_LIMIT_BURST,
        user=deployment.user,
        working_directory=f"WorkingDirectory={raw_line(directory)}" if directory else None,
        environment=[
            f"Environment={assignment(name, value)}"
            for name, value in unit_environment(deployment).items()
        ],
        command=_continued(command_lines(deployment)),
        restart=deployment.restart,
        gpus=f" --gpus {visible_gpus(deployment)}" if deployment.gpus != EVERY_GPU else "",
        load_seconds=deployment.timeouts.load,
        stop_seconds=deployment.stop_seconds,
        limits=deployment.limits,
        unit_additions=addition_lines(deployment.additions.get("Unit", {})),
        service_additions=addition_lines(deployment.additions.get("Service", {})),
    )


def render_environment(deployment: Deployment, secrets: Mapping[str, str]) -> str:
    """The text of the environment file that only root may read: the deployment's secrets."""
    lines = [environment_file_line(name, secrets[name]) for name in deployment.secrets]
    return render("environment.j2", name=deployment.name, lines=lines)


def unit_environment(deployment: Deployment) -> dict[str, str]:
    """Variables of the unit: what every GPU server needs, then the deployment's own, which win."""
    program = deployment.python or deployment.command[0]
    policy = {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "PATH": f"{PurePosixPath(program).parent}:{SYSTEM_PATH}",
        "PYTHONUNBUFFERED": "1",
        "SPT_NOENV": "1",
    }
    if deployment.gpus != EVERY_GPU:
        policy["CUDA_VISIBLE_DEVICES"] = visible_gpus(deployment)
    if deployment.engine == "vllm":
        # Its API server gives up on the engine by itself, by default before a large load is over.
        policy[READY_TIMEOUT] = str(deployment.timeouts.load)
    return {**policy, **deployment.env}


def visible_gpus(deployment: Deployment) -> str:
    """The deployment's GPUs as CUDA takes them."""
    return ",".join(str(name) for name in deployment.gpus)


def start_limit_interval(deployment: Deployment) -> int:
    """Seconds in which START_LIMIT_BURST starts are the most: a slow crash loop has to fit in."""
    limits = deployment.timeouts
    cycle = limits.load + deployment.stop_seconds + deployment.restart.seconds
    return START_LIMIT_BURST * cycle + START_LIMIT_MARGIN


def _continued(lines: list[list[str]]) -> list[str]:
    """ExecStart= with one option a line, so that a changed option is one changed line."""
    written = [" ".join(exec_argument(argument) for argument in line) for line in lines]
    starts = [f"ExecStart={written[0]}", *(f"    {line}" for line in written[1:])]
    return [*(f"{line} \\" for line in starts[:-1]), starts[-1]]
