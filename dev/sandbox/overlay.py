"""Layers of folders seen as one."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


def mount_overlay(lower: Sequence[Path], upper: Path, work: Path, merged: Path) -> None:
    """Mount `lower` (topmost first, never written) under `upper` at `merged`."""
    options = f"lowerdir={':'.join(map(str, lower))},upperdir={upper},workdir={work}"
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, str(merged)], check=True)


@contextmanager
def overlay(lower: Sequence[Path], upper: Path, work: Path, merged: Path) -> Iterator[None]:
    """The same, for the time of a block."""
    mount_overlay(lower, upper, work, merged)
    try:
        yield
    finally:
        subprocess.run(["umount", str(merged)], check=True)


def remove_tree(path: Path) -> None:
    """Remove a file or a folder, after unmounting what an interrupted run left mounted in it."""
    mounted = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    for point in reversed(mounted):
        if Path(point).is_relative_to(path):
            subprocess.run(["umount", point], check=True)
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def copy_tree(source: Path, target: Path) -> None:
    """Copy a layer with the owners, and the marks by which it hides what is below it."""
    subprocess.run(["cp", "--archive", str(source), str(target)], check=True)
