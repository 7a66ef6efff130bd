"""The environment with which a person runs `pulumi` by hand in this folder."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from toolchain.places import Places


def machine_path(path: str, places: Places) -> str:
    """Return PATH without the folders of the tool chain, as it was before any `make env`."""
    entries = path.split(os.pathsep)
    return os.pathsep.join(entry for entry in entries if not places.own(Path(entry)))


def environment(places: Places, first: Sequence[Path], machine: str) -> dict[str, str]:
    """Return the variables, with the folders `first` before the PATH of the `machine`."""
    return {
        "PATH": os.pathsep.join([*(str(folder) for folder in first), machine]),
        "PULUMI_HOME": str(places.pulumi_home),
        "PULUMI_BACKEND_URL": f"file://{places.state}",
        "PULUMI_CONFIG_PASSPHRASE": "sandbox",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }


def export_lines(variables: Mapping[str, str]) -> str:
    """Write variables as lines for `eval` in a shell."""
    return "\n".join(f"export {name}={shlex.quote(value)}" for name, value in variables.items())
