"""What is legal in a deployment and yet probably not meant: warnings, a sentence each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from cutover.additions import Fault, additions_warned
from cutover.deployment import Deployment
from cutover.engine_names import doubtful

WRAPPERS = ("conda", "mamba", "micromamba", "sh", "bash", "uv", "poetry", "pipenv", "nohup", "sudo")
"""Programs that stay as the parent of what they start, and do not pass a stop signal on."""


def advice(one: Deployment) -> list[str]:
    """Warnings about one deployment, each with file and field."""
    faults = [*doubtful(one), *additions_warned(one.additions), *_path(one), *_wrapper(one)]
    return [f"deployments/{one.name}.yaml: {'.'.join(path)}: {text}" for path, text in faults]


def _path(one: Deployment) -> Iterator[Fault]:
    path = one.env.get("PATH")
    if path is None:
        return
    if "$" in path:
        yield ("env", "PATH"), "holds a `$`, which systemd does not expand here: write it out"
    folders = path.split(":")
    missing = [folder for folder in ("/usr/bin", "/bin") if folder not in folders]
    if missing:
        yield (
            ("env", "PATH"),
            f"is taken as it is and lacks {' and '.join(missing)}: kernels that are compiled at "
            "run time will not find a compiler",
        )


def _wrapper(one: Deployment) -> Iterator[Fault]:
    program = PurePosixPath(one.command[0]).name if one.command else ""
    if program in WRAPPERS:
        yield (
            ("command",),
            f"begins with {program}, which stays as parent and does not pass the stop signal on: "
            "name the server's own program",
        )
