"""Builds the agent as one archive that is the same, byte for byte, in every clone."""

from __future__ import annotations

import base64
import bz2
import functools
import hashlib
import io
import zipfile
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).parent / "cutover_agent"
_SHEBANG = b"#!/usr/bin/python3 -I\n"
# On a host the same modules lie compiled beside the archive, which halves the start of a step.
_MAIN = """\
import gc, os, sys
gc.disable()
archive = os.path.realpath(sys.argv[0])
if os.path.dirname(archive) == "/usr/local/lib/cutover":
    sys.path.insert(0, os.path.splitext(archive)[0])
from cutover_agent.__main__ import main
gc.enable()
sys.exit(main())
"""
_DATE = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Archive:
    """The agent's bytes and their SHA-256, hexadecimal."""

    data: bytes
    digest: str

    @functools.cached_property
    def packed(self) -> str:
        """The bytes as they travel: bzip2 in base64, a quarter of what they are.

        Pulumi's state holds this text once for every host, and the CLI writes the whole state
        anew for every resource that is new.
        """
        return base64.b64encode(bz2.compress(self.data)).decode()


@functools.cache
def build(source: Path = SOURCE) -> Archive:
    """One executable zip archive with fixed dates and order; made once in a process.

    Stored, not compressed: compressed bytes depend on the zlib of the machine that builds.
    """
    buffer = io.BytesIO()
    buffer.write(_SHEBANG)
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        _add(archive, "__main__.py", _MAIN)
        for path in sorted(source.rglob("*.py")):
            # Line ends as they are in git, also where a checkout changes them.
            text = path.read_text(encoding="utf-8").replace("\r\n", "\n")
            _add(archive, path.relative_to(source.parent).as_posix(), text)
    data = buffer.getvalue()
    return Archive(data, hashlib.sha256(data).hexdigest())


def _add(archive: zipfile.ZipFile, name: str, text: str) -> None:
    entry = zipfile.ZipInfo(name, _DATE)
    entry.create_system = 3
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, text)
