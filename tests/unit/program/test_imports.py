"""What the program costs before it does anything."""

from __future__ import annotations

import subprocess
import sys


def test_settings_and_catalogue_need_neither_pulumi_nor_the_template_engine() -> None:
    code = (
        "import sys; import cutover.catalogue, cutover.selection, cutover.units, cutover.orders;"
        "print(sorted({'pulumi', 'jinja2', 'difflib', 'asyncio'} & set(sys.modules)))"
    )
    path = f"import sys; sys.path[:0] = {[p for p in sys.path if p]!r}; "
    told = subprocess.run(
        [sys.executable, "-c", path + code], capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "[]"
