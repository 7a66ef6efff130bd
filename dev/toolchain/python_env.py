"""The Python environment: .venv, exactly as requirements.txt pins it."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import sys
from pathlib import Path

from toolchain.act import SetupError, doing, run
from toolchain.pins import PYTHON
from toolchain.places import Places
from toolchain.system import install


def ensure_venv(places: Places) -> None:
    """Bring .venv to what requirements.txt says; cheap when it is there already."""
    ensure_packages_in(places.venv, places.project / "requirements.txt", places)


def ensure_packages_in(venv: Path, requirements: Path, places: Places) -> None:
    """Bring an environment to exactly what a file of pinned packages says."""
    stamp = venv / "requirements.sha256"
    python = venv / "bin" / "python"
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    runs = os.access(python, os.X_OK)
    if runs and stamp.is_file() and stamp.read_text() == wanted:
        return
    uv = _uv(places)
    with doing(f"installing the Python packages into {venv.relative_to(places.project)}"):
        if not runs:
            shutil.rmtree(venv, ignore_errors=True)
            run(uv, "venv", "--python", PYTHON, venv)
        # Compiled here: where Python may not write bytecode, every start would compile it anew.
        how = ("--require-hashes", "--compile-bytecode")
        run(uv, "pip", "sync", *how, "--python", python, requirements)
    stamp.write_text(wanted)


def _uv(places: Places) -> Path:
    """Find a uv that runs, or install one for the tool chain alone."""
    on_path = shutil.which("uv")
    if on_path and _runs(on_path):
        return Path(on_path)
    own = places.cache / "uv" / "bin" / "uv"
    if not own.exists():
        _install_uv(own.parent.parent)
    return own


def _runs(uv: str) -> bool:
    """Tell a uv from a version manager's shim for one that is not installed."""
    try:
        run(uv, "--version")
    except SetupError:
        return False
    return True


def _install_uv(folder: Path) -> None:
    if importlib.util.find_spec("ensurepip") is None:
        install(["python3-venv"])
    pinned = Path(__file__).with_name("uv.txt")
    with doing("installing uv"):
        shutil.rmtree(folder, ignore_errors=True)
        run(sys.executable, "-m", "venv", folder)
        run(folder / "bin" / "python", "-m", "pip", "install", "-q", "-r", pinned)
