"""What a deployment says about files of the host: edits of the checkpoint, files as patched."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator

from cutover.fields import (
    AN_ABSOLUTE_PATH,
    AbsolutePath,
    OneKey,
    Paragraphs,
    Strict,
    VariableName,
    matching,
    not_allowed,
    setting,
)

VIEWS = "/var/cache/cutover/views"
"""Where the host keeps its views of checkpoints: the service user has to read them."""


def json_name(value: str) -> str:
    """Accepts the name of a JSON file that lies in the checkpoint's own folder."""
    return value if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*\.json", value) else not_allowed()


class Edit(Strict):
    """What one JSON file of the checkpoint has to lose; a key that is not there is fine."""

    remove: list[OneKey] = setting(
        "Keys to take out: `quantization.kv_cache_quant_algo` there, `kv_cache_quant_algo` "
        "wherever it stands.",
        "at least one key, inner ones with dots",
        min_length=1,
    )


class Requirement(Strict):
    """A file of the host that must be exactly as patched."""

    path: AbsolutePath = setting("Where it is.", AN_ABSOLUTE_PATH)
    sha256: Annotated[str, matching(r"[0-9a-f]{64}")] = setting(
        "What `sha256sum` prints for it.", "64 hexadecimal digits, in small letters"
    )
    sets: list[VariableName] = setting(
        "Environment variables that this file sets inside the processes, such as a "
        "sitecustomize.py.",
        "a list of names of variables",
        [],
    )
    why: Paragraphs = setting("What the patch is for.", "text", "")


JsonName = Annotated[str, AfterValidator(json_name)]


def view_path(deployment: str, checkpoint: str, edits: Mapping[str, Edit]) -> str:
    """Where the edited view of a checkpoint is: another path for other edits.

    So a changed edit changes the unit's text, and with it the deployment's digest.
    """
    value = {name: edit.remove for name, edit in edits.items()}
    text = json.dumps([checkpoint, value], sort_keys=True)
    return f"{VIEWS}/{deployment}/{hashlib.sha256(text.encode()).hexdigest()[:12]}"
