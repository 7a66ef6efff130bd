"""The pulumi-command plugin: the real one where it can be had, else the stand-in."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from toolchain.act import SetupError, doing, run, say
from toolchain.pins import PLUGIN_VERSION
from toolchain.places import Places

NAME = "pulumi-resource-command"
IN_PLUGINS = Path("plugins") / f"resource-command-v{PLUGIN_VERSION}" / NAME
DOWNLOAD_LIMIT_S = 20
ASK_AGAIN_AFTER_S = 24 * 3600


def choose(real: Sequence[Path], standin: Path) -> Path:
    """Take the first real plugin there is, and the stand-in only when there is none."""
    return real[0] if real else standin


def may_download(env: Mapping[str, str], failed_s_ago: float | None) -> bool:
    """Say whether to try Pulumi's own download: never in CI, and at most once a day in vain."""
    return not env.get("CI") and (failed_s_ago is None or failed_s_ago > ASK_AGAIN_AFTER_S)


def ensure_plugin(places: Places, pulumi: Path, path: str) -> None:
    """Link a plugin into this checkout's PULUMI_HOME. `path` is the PATH to search for one."""
    real = _real_ones(places, path)
    if not real:
        _try_download(places, pulumi)
        real = _real_ones(places, path)
    plugin = choose(real, places.standin)
    changed = link(places.pulumi_home / IN_PLUGINS, plugin)
    if changed and plugin == places.standin:
        say(
            f"cutover: {NAME} is a stand-in here, for the sandbox stack and the tests only;"
            " the real plugin wins once it is installed"
        )


def _real_ones(places: Places, path: str) -> list[Path]:
    on_path = shutil.which(NAME, path=path)
    candidates = [
        *([Path(on_path)] if on_path else []),
        Path.home() / ".pulumi" / IN_PLUGINS,
        places.cache / "download" / IN_PLUGINS,
    ]
    return [plugin for plugin in candidates if os.access(plugin, os.X_OK)]


def _try_download(places: Places, pulumi: Path) -> None:
    failure = places.cache / "plugin-download-failed"
    ago = time.time() - failure.stat().st_mtime if failure.exists() else None
    if not may_download(os.environ, ago):
        return
    wanted = ["resource", "command", PLUGIN_VERSION]
    download = places.cache / "download"
    home = {"PULUMI_HOME": str(download), "PULUMI_SKIP_UPDATE_CHECK": "true"}
    try:
        with doing(f"downloading the pulumi-command plugin (gives up after {DOWNLOAD_LIMIT_S} s)"):
            run(pulumi, "plugin", "install", *wanted, env=home, limit_s=DOWNLOAD_LIMIT_S)
        failure.unlink(missing_ok=True)
    except SetupError:
        shutil.rmtree(download, ignore_errors=True)
        failure.touch()


def link(place: Path, target: Path) -> bool:
    """Link `place` to `target` in one step, as a Pulumi may run meanwhile; False if it was."""
    if place.is_symlink() and place.readlink() == target:
        return False
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent.parent) as scratch:
        fresh = Path(scratch) / place.name
        fresh.symlink_to(target)
        fresh.replace(place)
    return True
