"""Pulumi: the installed one when it is recent enough, else one built from Go modules."""

from __future__ import annotations

import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from toolchain.act import doing, run
from toolchain.golang import GO_ENV, go_for, required
from toolchain.pins import OLDEST_PULUMI
from toolchain.places import Places

CLI = "github.com/pulumi/pulumi/pkg/v3"
SDK = "github.com/pulumi/pulumi/sdk/v3"
LANGUAGE_HOST = "pulumi-language-python"
MODULES = Path(__file__).with_name("go")


@dataclass(frozen=True)
class Installed:
    """A Pulumi that is on the machine."""

    version: tuple[int, ...]
    has_language_host: bool


def why_not(found: Installed | None) -> str | None:
    """Say why the Pulumi found on the machine cannot be used; None when it can."""
    if found is None:
        return "no Pulumi is installed"
    if found.version < OLDEST_PULUMI:
        return (
            f"the installed Pulumi {_dotted(found.version)} is older than {_dotted(OLDEST_PULUMI)}"
        )
    if not found.has_language_host:
        return f"the installed Pulumi has no {LANGUAGE_HOST} beside it"
    return None


def parse_version(printed: str) -> tuple[int, ...]:
    """Read what `pulumi version` prints; (0, 0, 0) when it is no version."""
    found = re.match(r"v?(\d+)\.(\d+)\.(\d+)", printed)
    return tuple(int(number) for number in found.groups()) if found else (0, 0, 0)


def ensure_pulumi(places: Places, path: str) -> Path:
    """Return the folder that holds `pulumi` and its Python language host.

    `path` is the PATH to search for an installed one.
    """
    command = shutil.which("pulumi", path=path)
    reason = why_not(_look_at(Path(command), places) if command else None)
    if command and not reason:
        return Path(command).parent
    cli = (MODULES / "cli" / "go.mod").read_text()
    language = (MODULES / "language" / "go.mod").read_text()
    built = places.cache / f"pulumi-{required(cli, CLI)}-python-{required(language, SDK)}"
    if not built.is_dir():
        _build(built, required(cli, CLI), str(reason))
    return built


def _look_at(command: Path, places: Places) -> Installed:
    """Ask a pulumi for its version; remembered, as that takes a third of a second."""
    stat = command.stat()
    key = f"{command} {stat.st_size} {stat.st_mtime_ns}\n"
    memo = places.cache / "installed-pulumi"
    known = memo.read_text() if memo.is_file() else ""
    if not known.startswith(key):
        known = key + run(command, "version", env={"PULUMI_SKIP_UPDATE_CHECK": "true"})
        memo.write_text(known)
    beside = {command.parent, command.resolve().parent}
    has_host = any((folder / LANGUAGE_HOST).exists() for folder in beside)
    return Installed(parse_version(known[len(key) :]), has_host)


def _build(target: Path, version: str, reason: str) -> None:
    for left_over in target.parent.glob("build-*"):
        shutil.rmtree(left_over)
    go = go_for(MODULES / "cli" / "go.mod")
    with tempfile.TemporaryDirectory(prefix="build-", dir=target.parent) as scratch:
        out = Path(scratch) / "out"
        stamp = f"-X {SDK}/go/common/version.Version={version}"
        with doing(f"{reason}: building it from Go modules (about 5 min on 2 cores, once)"):
            _go_build(go, "cli", out, f"{CLI}/cmd/pulumi", stamp)
        with doing("building Pulumi's Python language host (about 30 s, once)"):
            host = f"{SDK}/python/cmd/{LANGUAGE_HOST}"
            _go_build(go, "language", out, host)
            # The old host runs programs by a script; only that of the new SDK fits new packages.
            sdk = run(go, "list", "-m", "-f", "{{.Dir}}", SDK, cwd=MODULES / "cli", env=GO_ENV)
            script = f"{LANGUAGE_HOST}-exec"
            shutil.copy(Path(sdk.strip()) / "python" / "cmd" / script, out / script)
            (out / script).chmod(0o755)
        out.rename(target)


def _go_build(go: Path, module: str, out: Path, package: str, ldflags: str = "") -> None:
    flags = ["-ldflags", f"-s -w {ldflags}", "-o", f"{out}/"]
    run(go, "build", *flags, package, cwd=MODULES / module, env=GO_ENV)


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(str(number) for number in version)
