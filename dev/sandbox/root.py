"""The root file system of every practice host: Debian packages below, what practises on top.

Both layers are built once, into the cache, under a digest of what goes into them.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sandbox.checkpoint import make_practice_models
from sandbox.errors import SandboxError
from sandbox.overlay import overlay, remove_tree
from sandbox.places import GUEST, cache_root

PACKAGES = [
    *("systemd", "systemd-sysv", "dbus", "openssh-server", "sudo", "psmisc", "procps"),
    *("python3", "python3-setproctitle", "iproute2"),
]
COMPONENTS = {"main", "universe"}


def layers() -> list[Path]:
    """The read-only layers of a host, topmost first; builds what is missing (a minute, once)."""
    packages = _built("packages", _digest(PACKAGES, _sources()), _install_packages)
    practice = _built(
        "practice",
        _digest([packages.name], _guest_texts()),
        lambda target: _install_practice(packages, target),
    )
    return [practice, packages]


def _install_packages(target: Path) -> None:
    _say("making the root file system of the practice hosts from Debian packages (about a minute)")
    options = target.with_suffix(".apt.conf")
    options.write_text(_apt_transport())
    # Processes and mounts of its own, which all end with us, however we end.
    command = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--propagation", "private"]
    command += ["--pid", "--fork", "--kill-child", "--mount-proc"]
    command += ["mmdebstrap", "--quiet", "--mode=root", "--variant=apt", f"--aptopt={options}"]
    command += [f"--include={','.join(PACKAGES)}", _codename(), str(target), "-"]
    try:
        _run(command, "\n".join(_sources()))
    finally:
        options.unlink()


def _install_practice(packages: Path, target: Path) -> None:
    work, merged = target.with_suffix(".work"), target.with_suffix(".merged")
    for folder in (target, work, merged):
        folder.mkdir()
    with overlay([packages], target, work, merged):
        shutil.copytree(GUEST, merged / "usr/lib/practice", ignore=shutil.ignore_patterns("__py*"))
        make_practice_models(merged / "models")
        _run(["chroot", str(merged), "sh", "-eu", "/usr/lib/practice/setup.sh"])
    remove_tree(work)
    remove_tree(merged)


def _built(kind: str, digest: str, build: Callable[[Path], None]) -> Path:
    """The layer of that digest; one caller builds, callers beside it wait."""
    folder = cache_root() / "practice-host"
    folder.mkdir(parents=True, exist_ok=True)
    ready = folder / f"{kind}-{digest}"
    with _lock(folder / f"{kind}.lock"):
        if not ready.is_dir():
            unfinished = folder / f"{kind}-unfinished"
            for left in folder.glob(f"{unfinished.name}*"):
                remove_tree(left)
            build(unfinished)
            unfinished.rename(ready)
    return ready


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _sources() -> list[str]:
    """This machine's own package sources of its release, as apt itself understands them."""
    release = _codename()
    wanted = {release, f"{release}-updates", f"{release}-security"}
    keyring = f"/usr/share/keyrings/{_os_release()['ID']}-archive-keyring.gpg"
    form = "$(SITE) $(RELEASE) $(COMPONENT)"
    listed = _run(["apt-get", "indextargets", "--format", form, "Created-By: Packages"])
    fields = [line.split() for line in dict.fromkeys(listed.splitlines())]
    found = [
        f"deb [signed-by={keyring}] {site} {suite} {component}"
        for site, suite, component in (f for f in fields if len(f) == 3)
        if suite in wanted and component in COMPONENTS
    ]
    if not found:
        raise SandboxError(
            f"/etc/apt/sources.list* names no source for '{release}': add one and `apt-get update`."
        )
    return found


def _apt_transport() -> str:
    """How this machine's apt reaches its mirror (proxy, retries), which mmdebstrap ignores."""
    dump = _run(["apt-config", "dump"]).splitlines()
    wanted = ("Acquire::http", "Acquire::https", "Acquire::Retries", "Acquire::Check-")
    return "\n".join(line for line in dump if line.startswith(wanted)) + "\n"


def _os_release() -> dict[str, str]:
    lines = Path("/etc/os-release").read_text().splitlines()
    pairs = (line.split("=", 1) for line in lines if "=" in line)
    return {key: value.strip('"') for key, value in pairs}


def _codename() -> str:
    return _os_release()["VERSION_CODENAME"]


def _guest_texts() -> list[str]:
    files = sorted(p for p in GUEST.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    maker = Path(__file__).with_name("checkpoint.py")
    return [f"{file} {os.stat(file).st_mode} {file.read_text()}" for file in (*files, maker)]


def _digest(*texts: list[str]) -> str:
    return hashlib.sha256(repr(texts).encode()).hexdigest()[:16]


def _run(command: list[str], text: str = "") -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode:
        raise SandboxError(
            f"`{shlex.join(command)}` failed: {done.stderr.strip() or done.stdout.strip()}"
        )
    return done.stdout


def _say(text: str) -> None:
    print(f"sandbox: {text}", file=sys.stderr, flush=True)
