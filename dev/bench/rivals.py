"""The same files and the same service on the same hosts, by Ansible and by pyinfra.

Both run as their makers advise for speed: Ansible with pipelining, a connection that persists, no
fact gathering and as many forks as hosts; pyinfra with its own parallel connections.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from bench.fleet import ACTIVE
from cutover.catalogue import load_catalogue
from cutover.units import render_environment, render_unit
from sandbox import Host
from tests.acceptance.stack import Stack
from toolchain.__main__ import PROJECT
from toolchain.places import places
from toolchain.python_env import ensure_packages_in

ANSIBLE, PYINFRA = "Ansible", "pyinfra"

PYINFRA_DEPLOY = """\
from pyinfra.operations import files, systemd
from pyinfra.operations.util import any_changed

copied = [
    files.put(src=source, dest=target, user="root", group="root", mode=mode)
    for source, target, mode in {files!r}
]
systemd.daemon_reload(_if=any_changed(*copied))
systemd.service(service={service!r}, running=True, enabled=True)
"""


@dataclass(frozen=True)
class Rivals:
    """The texts of a stack's catalogue, laid out for both tools."""

    folder: Path
    hosts: Sequence[Host]

    def lay_out(self, stack: Stack) -> None:
        """Writes the files as the stack's catalogue is now, and what each tool reads."""
        self.folder.mkdir(exist_ok=True)
        catalogue = load_catalogue(stack.folder / "deployments")
        files = []
        for name, one in catalogue.items():
            unit, env = self.folder / one.unit, self.folder / f"{name}.env"
            unit.write_text(render_unit(one))
            env.write_text(render_environment(one, {}))
            files.append((str(unit), f"/etc/systemd/system/{one.unit}", "644"))
            files.append((str(env), f"/etc/cutover/{name}.env", "600"))
        self._for_ansible(files, catalogue[ACTIVE].unit)
        self._for_pyinfra(files, catalogue[ACTIVE].unit)

    def ansible(self, check: bool = False) -> None:
        """`ansible-playbook`, and with `check` what a preview is there."""
        words = ["ansible-playbook", "-i", "inventory.yaml", "playbook.yaml"]
        self._run([*words, *(["--check", "--diff"] if check else [])])

    def pyinfra(self, check: bool = False) -> None:
        """`pyinfra`, and with `check` what a preview is there."""
        self._run(["pyinfra", "inventory.py", "deploy.py", "--dry" if check else "--yes"])

    def _run(self, words: list[str]) -> None:
        program = environment() / "bin" / words[0]
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        done = subprocess.run(
            [str(program), *words[1:]],
            cwd=self.folder,
            env={**os.environ, "HOME": str(home), "ANSIBLE_CONFIG": "ansible.cfg"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def _for_ansible(self, files: list[tuple[str, str, str]], service: str) -> None:
        self._write(
            "ansible.cfg",
            f"[defaults]\ngathering = explicit\nforks = {len(self.hosts)}\n"
            f"local_tmp = {self.folder}/tmp\ninterpreter_python = /usr/bin/python3\n"
            "[ssh_connection]\npipelining = true\n"
            f"ssh_args = -F none -o ControlMaster=auto -o ControlPersist=600s "
            f"-o UserKnownHostsFile={self._known_hosts()} -o IdentitiesOnly=yes\n"
            f"control_path_dir = {self.folder}/masters\n",
        )
        inventory = {
            host.name: {
                "ansible_host": host.address,
                "ansible_user": "root",
                "ansible_ssh_private_key_file": str(host.key_path),
            }
            for host in self.hosts
        }
        self._write("inventory.yaml", yaml.safe_dump({"all": {"hosts": inventory}}))
        copies = [{"src": src, "dest": dest, "mode": f"0{mode}"} for src, dest, mode in files]
        copy = {name: f"{{{{ item.{name} }}}}" for name in ("src", "dest", "mode")}
        tasks = [
            {"copy": {**copy, "owner": "root", "group": "root"}, "loop": copies,
             "register": "copied"},
            {"systemd_service": {"daemon_reload": True}, "when": "copied is changed"},
            {"systemd_service": {"name": service, "state": "started", "enabled": True}},
        ]  # fmt: skip
        play = {"hosts": "all", "gather_facts": False, "tasks": tasks}
        self._write("playbook.yaml", yaml.safe_dump([play]))

    def _for_pyinfra(self, files: list[tuple[str, str, str]], service: str) -> None:
        hosts = [
            (
                host.address,
                {
                    "ssh_user": "root",
                    "ssh_key": str(host.key_path),
                    "ssh_known_hosts_file": str(self._known_hosts()),
                    "ssh_strict_host_key_checking": "yes",
                },
            )
            for host in self.hosts
        ]
        self._write("inventory.py", f"hosts = {hosts!r}\n")
        self._write("deploy.py", PYINFRA_DEPLOY.format(files=files, service=service))

    def _known_hosts(self) -> Path:
        path = self.folder / "known_hosts"
        path.write_text("".join(f"{host.address} {host.host_key}\n" for host in self.hosts))
        return path

    def _write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)


@cache
def environment() -> Path:
    """Where both are installed, as requirements-bench.txt pins them."""
    here = places(PROJECT, os.environ)
    ensure_packages_in(here.rivals, PROJECT / "requirements-bench.txt", here)
    return here.rivals
