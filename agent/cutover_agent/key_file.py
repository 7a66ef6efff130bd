"""The file from which SGLang takes its API key: it reads none from its environment."""

from __future__ import annotations

import json
import os
import pwd
from pathlib import Path

from . import environment
from .store import Store
from .unit_text import directives

VARIABLE = "SGLANG_API_KEY"
NOTE = "# Written by cutover: the API key of the deployment.\n"


def path(deployment: str) -> Path:
    """The file that the deployment's command names in `--config`."""
    return environment.FOLDER / f"{deployment}.key.yaml"


def wanted(store: Store, deployment: str, unit_text: str, env_text: str) -> dict[Path, str]:
    """The file and the digest of its text, where the unit asks for one."""
    key = environment.value(env_text, VARIABLE)
    if key is None or str(path(deployment)) not in unit_text:
        return {}
    return {path(deployment): store.keep(f"{NOTE}api-key: {json.dumps(key)}\n")}


def give_to_user(deployment: str, unit_text: str) -> None:
    """Makes the service's user the only one who can read it."""
    names = directives(unit_text).get("User", ["root"])
    user = pwd.getpwnam(names[-1])
    if path(deployment).exists():
        os.chown(path(deployment), user.pw_uid, user.pw_gid)
