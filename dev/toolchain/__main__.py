"""`python3 -m toolchain setup` makes everything ready; `env` does so and prints export lines."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from toolchain.act import SetupError, alone, say
from toolchain.exports import environment, export_lines, machine_path
from toolchain.places import places
from toolchain.plugin import ensure_plugin
from toolchain.pulumi import ensure_pulumi
from toolchain.python_env import ensure_venv
from toolchain.system import ensure_packages

PROJECT = Path(__file__).resolve().parents[2]


def ensure() -> dict[str, str]:
    """Make everything ready and return the environment to run Pulumi in."""
    here = places(PROJECT, os.environ)
    path = machine_path(os.environ["PATH"], here)
    with alone(here.cache / "lock"):
        ensure_packages()
        ensure_venv(here)
        tools = ensure_pulumi(here, path)
        ensure_plugin(here, tools / "pulumi", path)
    here.state.mkdir(parents=True, exist_ok=True)
    # An installed Pulumi is on PATH already, and moving /usr/bin forward would change others.
    first = [here.venv / "bin", *([tools] if here.own(tools) else [])]
    return environment(here, first, path)


def main(arguments: list[str]) -> int:
    """Do what the command line says and return the exit code."""
    if arguments not in (["setup"], ["env"]):
        say("usage: python3 -m toolchain setup|env")
        return 2
    try:
        variables = ensure()
    except SetupError as error:
        say(f"cutover: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    if arguments == ["env"]:
        print(export_lines(variables))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
