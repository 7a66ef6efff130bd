"""Runs one practice host: mounts its disk, boots it in a container, boots it again on reboot.

A process of its own in a mount namespace of its own, so that no mount outlives it. SIGTERM is an
orderly shutdown; killing it is a power cut.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sandbox import cgroups
from sandbox.overlay import mount_overlay

REBOOT = 133  # what systemd-nspawn with --keep-unit exits with when the container reboots


def main(folder: Path) -> int:
    """Keep the host of this folder running; its exit status is that of systemd-nspawn."""
    host = json.loads((folder / "host.json").read_text())
    cgroups.join(host["group"])
    disk = folder / "disk"
    mount_overlay([Path(p) for p in host["layers"]], disk / "upper", disk / "work", disk / "root")
    # systemd-nspawn leaves folders there; this copy vanishes with the namespace.
    Path("/run/systemd/nspawn").mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run/systemd/nspawn"], check=True)
    status = REBOOT
    while status == REBOOT:
        status = run_once(folder, host)
    return status


def run_once(folder: Path, host: dict[str, str]) -> int:
    """One boot, until the container has ended."""
    command = ["setpriv", "--pdeathsig", "KILL", "systemd-nspawn", "--quiet", "--boot"]
    command += ["-D", str(folder / "disk/root"), "-M", host["group"], "--register=no"]
    command += ["--keep-unit", "--private-network", f"--hostname={host['name']}"]
    command += ["--kill-signal=SIGRTMIN+3", "--console=pipe", "--resolv-conf=off"]
    command += ["--timezone=off", "--link-journal=no"]
    with (folder / "console.log").open("ab") as console:
        nspawn = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT
        )
    signal.signal(signal.SIGTERM, lambda *_: nspawn.terminate())
    leader = folder / "leader"
    while nspawn.poll() is None:
        if pid := leader_of(nspawn.pid):
            leader.with_suffix(".new").write_text(str(pid))
            leader.with_suffix(".new").rename(leader)
            break
        time.sleep(0.01)
    status = nspawn.wait()
    leader.unlink(missing_ok=True)
    return status


def leader_of(nspawn: int) -> int | None:
    """The first process of the container: the child of systemd-nspawn in another pid namespace."""
    try:
        children = Path(f"/proc/{nspawn}/task/{nspawn}/children").read_text().split()
        for child in map(int, children):
            if os.readlink(f"/proc/{child}/ns/pid") != os.readlink("/proc/self/ns/pid"):
                return child
    except OSError:
        pass  # one of them ended while we looked
    return None


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
