"""A practice GPU host: a real systemd and sshd on a loopback address of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from sandbox import cgroups, keys, processes
from sandbox.errors import SandboxError
from sandbox.overlay import copy_tree, remove_tree
from sandbox.places import state_root

HERE = Path(__file__).parent
BOOT_SECONDS = 60.0
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENVIRONMENT = {"PATH": PATH, "HOME": "/root", "LANG": "C.UTF-8"}

Done = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Host:
    """One practice host; everything about it is in its folder, so any process can take it up."""

    folder: Path
    name: str
    address: str
    group: str
    port: int = 22

    @property
    def key_path(self) -> Path:
        """The private key for `root` and `operator`."""
        return self.folder.parent / "id_ed25519"

    @property
    def host_key(self) -> str:
        """The public host key, `ssh-ed25519 AAAA...`."""
        return keys.public_line(self.folder / "host_key")

    @property
    def leader(self) -> int | None:
        """The pid, outside, of the host's first process while it is up."""
        try:
            pid = int((self.folder / "leader").read_text())
            os.kill(pid, 0)
            return pid
        except (OSError, ValueError):
            return None

    @property
    def state(self) -> str:
        """`up` (answers on port 22), `booting`, or `off`."""
        if not self.leader:
            return "booting" if processes.alive(self._process("keeper")) else "off"
        return "up" if self._ssh_answers() else "booting"

    def ssh(
        self, *command: str, user: str = "root", text: str = "", timeout: float | None = 60
    ) -> Done:
        """Run a command by the OpenSSH client; several words reach the remote shell joined."""
        known = self.folder / "known_hosts"
        options = ["BatchMode=yes", "IdentitiesOnly=yes", "StrictHostKeyChecking=yes"]
        options += [f"UserKnownHostsFile={known}", "LogLevel=ERROR"]
        client = ["ssh", "-F", "none", "-i", str(self.key_path), "-p", str(self.port)]
        client += [word for option in options for word in ("-o", option)]
        client += [f"{user}@{self.address}", "--", *command]
        return subprocess.run(client, input=text, text=True, capture_output=True, timeout=timeout)

    def exec(
        self,
        argv: Sequence[str],
        *,
        text: str = "",
        env: Mapping[str, str] | None = None,
        check: bool = True,
        timeout: float | None = 60,
    ) -> Done:
        """Run argv as root in the host without SSH, in 10 ms; a failure raises if `check`."""
        done = subprocess.run(
            self.enter_command(argv),
            input=text,
            text=True,
            capture_output=True,
            env={**ENVIRONMENT, **(env or {})},
            timeout=timeout,
        )
        if check and done.returncode:
            said = done.stderr.strip() or done.stdout.strip()
            raise SandboxError(f"{list(argv)} on {self.name} ended {done.returncode}: {said}")
        return done

    def enter_command(self, argv: Sequence[str]) -> list[str]:
        """The command line that runs argv inside, as a process of the host's groups."""
        if not self.leader:
            raise SandboxError(f"Practice host '{self.name}' is off: boot() it first.")
        home = f"--wd=/proc/{self.leader}/root/root"
        enter = ["nsenter", "-t", str(self.leader), "--all", home, "--", *argv]
        return cgroups.joining(self.leader, enter)

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """Write a file in the host, and its missing folders."""
        self.exec(["install", "-D", "-m", f"{mode:o}", "/dev/stdin", path], text=text)

    def read(self, path: str) -> str:
        """The text of a file in the host."""
        return self.exec(["cat", path]).stdout

    def slow_down(self, seconds: float) -> None:
        """Make new SSH connections take so long each way, as over a line through the world."""
        (self.folder / "delay").write_text(str(seconds))

    def boot(self) -> None:
        """Switch the host on and wait until its systemd has settled and sshd answers."""
        keeper = ["unshare", "--mount", "--propagation", "private", sys.executable]
        keeper += ["-B", str(HERE / "keeper.py"), str(self.folder)]
        self.launch("keeper", keeper)
        deadline = time.monotonic() + BOOT_SECONDS
        while not (self.leader and self._ssh_answers()):
            if time.monotonic() > deadline or not processes.alive(self._process("keeper")):
                console = (self.folder / "console.log").read_text(errors="replace")[-2000:]
                raise SandboxError(f"Practice host '{self.name}' did not boot:\n{console}")
            time.sleep(0.02)
        self.exec(["systemctl", "is-system-running", "--wait"], check=False, timeout=BOOT_SECONDS)

    def shut_down(self, seconds: float = 20.0) -> None:
        """Switch off in order; what has not ended after `seconds` loses power."""
        processes.end(self._process("keeper"), seconds)
        self.power_off()

    def power_off(self) -> None:
        """Cut the power: every process of the host dies at once; the disk stays."""
        processes.signal_process(self._process("keeper"), signal.SIGKILL)
        processes.gone(self._process("keeper"), 5.0)
        deadline = time.monotonic() + 10.0
        while left := cgroups.members(self.group):
            if time.monotonic() > deadline:
                raise SandboxError(f"Processes of '{self.name}' cannot be killed: {sorted(left)}.")
            for pid in left:
                processes.kill_pid(pid)
            time.sleep(0.01)
        (self.folder / "leader").unlink(missing_ok=True)
        cgroups.remove(self.group)

    def save_disk(self) -> None:
        """Keep the disk as it is now, while the host is off, for `rewind`."""
        copy_tree(self.folder / "disk/upper", self.folder / "disk/saved")

    def rewind(self) -> None:
        """Cut the power, forget everything since `save_disk`, and boot."""
        self.power_off()
        for part in ("upper", "work"):
            remove_tree(self.folder / "disk" / part)
        (self.folder / "disk/work").mkdir()
        copy_tree(self.folder / "disk/saved", self.folder / "disk/upper")
        self.boot()

    def stop(self) -> None:
        """Shut down and remove everything that belongs to the host."""
        self.shut_down()
        processes.end(self._process("forwarder"), 2.0)
        remove_tree(self.folder)

    def __enter__(self) -> Host:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.stop()

    def launch(self, role: str, command: list[str], fds: Sequence[int] = ()) -> None:
        """Start one of the two processes outside that keep the host going, detached from us."""
        with (self.folder / f"{role}.log").open("ab") as log:
            started = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=fds,
                start_new_session=True,
                cwd="/",
            )
        (self.folder / f"{role}.pid").write_text(processes.identity(started.pid))

    def _process(self, role: str) -> str:
        try:
            return (self.folder / f"{role}.pid").read_text()
        except OSError:
            return "0:0"

    def _ssh_answers(self) -> bool:
        try:
            with socket.create_connection((self.address, self.port), timeout=2) as connection:
                return connection.recv(4) == b"SSH-"
        except OSError:
            return False


def find(name: str, state: Path | None = None) -> Host:
    """The host of that name, whoever started it."""
    folder = (state or state_root()) / name
    try:
        facts = json.loads((folder / "host.json").read_text())
    except OSError:
        raise SandboxError(f"There is no practice host '{name}' in {folder.parent}.") from None
    return Host(folder, name, facts["address"], facts["group"])


def hosts(state: Path | None = None) -> list[Host]:
    """Every host of the state folder, by name."""
    found = sorted((state or state_root()).glob("*/host.json"))
    return [find(file.parent.name, state) for file in found]
