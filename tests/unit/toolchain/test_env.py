from __future__ import annotations

import subprocess
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[3]


def test_make_env_prints_nothing_but_export_lines_and_pulumi_runs_with_them() -> None:
    make = ["make", "--silent", "env"]
    lines = subprocess.run(make, cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    assert all(line.startswith("export ") for line in lines.splitlines())

    script = f"{lines}\npulumi version && command -v pulumi-language-python python"
    shell = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    version, _, python = shell.stdout.split()
    assert version.startswith("v3.")
    assert python == str(PROJECT / ".venv" / "bin" / "python")
