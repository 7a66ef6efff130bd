"""Go, to build Pulumi with: the machine's own, or the one that the module asks for."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from toolchain.act import doing, run
from toolchain.system import install

# No C compiler, no person's settings, no toolchain switch but ours.
GO_ENV = {"CGO_ENABLED": "0", "GOFLAGS": "", "GOTOOLCHAIN": "local", "GOWORK": "off"}


def required(go_mod: str, module: str) -> str:
    """Return the version of `module` that the text of a go.mod requires."""
    found = re.search(rf"^(?:require\s+)?\s*{re.escape(module)}\s+(\S+)", go_mod, re.MULTILINE)
    if found is None:
        raise ValueError(f"go.mod requires no {module}")
    return found[1]


def older(version: str, than: str) -> bool:
    """Compare Go versions: `go1.9` is older than `go1.26.6`."""
    return _numbers(version) < _numbers(than)


def go_for(go_mod: Path) -> Path:
    """Return a go command that is new enough for `go_mod`; installs one when there is none.

    Go fetches newer toolchains as modules by itself only since 1.21, and Debian 12 has 1.19.
    Fetching that module by hand works with all of them.
    """
    if shutil.which("go") is None:
        install(["golang-go"])
    go = Path(shutil.which("go") or "go")
    wanted = required(go_mod.read_text(), "go")
    have, system, machine = run(go, "env", "GOVERSION", "GOOS", "GOARCH", env=GO_ENV).split()
    if not older(have, wanted):
        return go
    with doing(f"fetching Go {wanted}, as {have} is too old"):
        module = f"golang.org/toolchain@v0.0.1-go{wanted}.{system}-{machine}"
        folder = Path(json.loads(run(go, "mod", "download", "-json", module, env=GO_ENV))["Dir"])
        for program in [*folder.glob("bin/*"), *folder.glob("pkg/tool/*/*")]:
            program.chmod(0o755)  # before 1.21, go unpacks every module without the x bit
    return folder / "bin" / "go"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])
