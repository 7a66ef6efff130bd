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


def wanted(store: Store, deployment: str, unit_digest: str, env_digest: str) -> dict[Path, str]:
    """The file and the digest of its text, where the unit asks for one."""
    unit_text = store.find(unit_digest)
    key = environment.value(store.find(env_digest), VARIABLE)
    if key is None or str(path(deployment)) not in unit_text:
        return {}
    return {path(deployment): store.keep(f"{NOTE}api-key: {json.dumps(key)}\n")}


def give_to_user(store: Store, deployment: str, unit_digest: str) -> None:
    """Makes the service's user the only one who can read it."""
    names = directives(store.text(unit_digest)).get("User", ["root"])
    user = pwd.getpwnam(names[-1])
    if path(deployment).exists():
        os.chown(path(deployment), user.pw_uid, user.pw_gid)
