"""Debian packages: installed by root when missing, else named."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping

from toolchain.act import SetupError, doing, run, say
from toolchain.pins import SYSTEM_PACKAGES


def missing(proofs: Mapping[str, str], there: Callable[[str], bool]) -> list[str]:
    """Name the packages whose proof, a command or a file, is not `there`."""
    return [package for package, proof in proofs.items() if not there(proof)]


def ensure_packages() -> None:
    """Install what the practice hosts need, or say what to install.

    Without them everything but the practice hosts works, so this never fails for want of root.
    """
    wanted = missing(SYSTEM_PACKAGES, _there)
    if wanted and _can_install():
        install(wanted)
    elif wanted:
        say(f"cutover: practice hosts need these Debian packages: {' '.join(wanted)}")


def install(packages: list[str]) -> None:
    """Install Debian packages. Raises SetupError when that is not possible here."""
    names = " ".join(packages)
    if not _can_install():
        raise SetupError(
            f"{names} is missing: install it, or run this as root on Debian or Ubuntu."
        )
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    with doing(f"installing Debian packages: {names}"):
        run("apt-get", "update", "-q", env=quiet)
        run("apt-get", "install", "-qy", "--no-install-recommends", *packages, env=quiet)


def _can_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def _there(proof: str) -> bool:
    return os.path.exists(proof) if proof.startswith("/") else shutil.which(proof) is not None
