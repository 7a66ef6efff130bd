"""A stack of the real program on practice hosts, driven by the real Pulumi CLI."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sandbox import Host

ROOT = Path(__file__).resolve().parents[2]
SGLANG, VLLM = "kimi-k25-int4-sglang", "minimax-m25"
UNITS = {SGLANG: "sglang-kimi-k25-int4.service", VLLM: "vllm-minimax-m25.service"}
MODELS = {SGLANG: "kimi-k2.5", VLLM: "minimax-m2.5"}
CODE = ("__main__.py", "Pulumi.yaml", "agent", "components", "cutover", "templates")
COMMAND_SECONDS = 120


@dataclass(frozen=True)
class Run:
    """What one call of the CLI did."""

    code: int
    text: str
    """Everything on the screen, both streams."""

    @property
    def counts(self) -> dict[str, int]:
        """The CLI's own closing count: created, updated, unchanged, ..."""
        words = re.findall(r"^\s+[-+~ ]*\s*(\d+) (\w+)$", self.text, re.M)
        return {word: int(number) for number, word in words}


class Stack:
    """A copy of the project with a catalogue and a stack file of its own."""

    def __init__(
        self, folder: Path, name: str = "test", catalogue: Sequence[str] = (SGLANG, VLLM)
    ) -> None:
        self.folder, self.name = folder, name
        self.seconds: float = COMMAND_SECONDS
        for part in CODE:
            (folder / part).symlink_to(ROOT / part)
        (folder / "deployments").mkdir()
        for deployment in catalogue:
            shutil.copy(ROOT / "deployments" / f"{deployment}.yaml", folder / "deployments")
        (folder / "state").mkdir()
        self.env = environment(folder)
        self._run("stack", "init", name)

    def copy_to(self, folder: Path) -> Stack:
        """The same stack with all that it is in, in another folder."""
        shutil.copytree(self.folder, folder, symlinks=True, dirs_exist_ok=True)
        made = copy(self)
        made.folder, made.env = folder, environment(folder)
        return made

    # Config.

    @property
    def file(self) -> Path:
        """The stack's config file."""
        return self.folder / f"Pulumi.{self.name}.yaml"

    def configure(self, **values: Any) -> None:
        """Sets config keys; what is not named stays."""
        content = yaml.safe_load(self.file.read_text()) or {} if self.file.exists() else {}
        config = content.setdefault("config", {})
        config.update({f"cutover:{key}": value for key, value in values.items()})
        self.file.write_text(yaml.safe_dump(content))

    def configure_active(self, deployment: str) -> None:
        """`pulumi config set active`, which leaves encrypted values as they are."""
        self._run("config", "set", "active", deployment, "--stack", self.name)

    def set_secret(self, path: str, value: str) -> None:
        """`pulumi config set --secret --path`, the value on its standard input."""
        command = ["pulumi", "config", "set", "--secret", "--path", path, "--stack", self.name]
        subprocess.run(command, cwd=self.folder, env=self.env, input=value, text=True, check=True)

    def edit(self, deployment: str, old: str, new: str) -> None:
        """Changes a deployment's file as an operator would."""
        path = self.folder / "deployments" / f"{deployment}.yaml"
        text = path.read_text()
        assert text.count(old) == 1, f"{old!r} is not once in {path.name}"
        path.write_text(text.replace(old, new))

    def change_code(self, file: str, old: str, new: str) -> None:
        """Gives this project a copy of its own of a part of the program, changed in one place."""
        part = Path(file).parts[0]
        if (self.folder / part).is_symlink():
            (self.folder / part).unlink()
            shutil.copytree(ROOT / part, self.folder / part)
        path = self.folder / file
        text = path.read_text()
        assert text.count(old) == 1, f"{old!r} is not once in {file}"
        path.write_text(text.replace(old, new))

    def change_agent(self) -> None:
        """Gives this project an agent of its own that differs from the others in a comment."""
        self.change_code("agent/cutover_agent/store.py", "\nclass Store:", "\n# New.\nclass Store:")

    # The CLI.

    def up(self, *options: str, fails: bool = False) -> Run:
        """`pulumi up`; a failure where none is expected is an error, and the other way round."""
        return self._checked(fails, "up", "--yes", "--skip-preview", *options)

    def up_after_preview(self, *options: str, fails: bool = False) -> Run:
        """`pulumi up` as people run it, which previews first."""
        return self._checked(fails, "up", "--yes", *options)

    def preview(self, *options: str, fails: bool = False) -> Run:
        """`pulumi preview`."""
        return self._checked(fails, "preview", *options)

    def destroy(self, *options: str, fails: bool = False) -> Run:
        """`pulumi destroy`."""
        return self._checked(fails, "destroy", "--yes", "--skip-preview", *options)

    def state(self) -> list[dict[str, Any]]:
        """What Pulumi remembers of each resource, the stack itself left out."""
        value = json.loads(self._run("stack", "export", "--stack", self.name).text)
        found = value["deployment"].get("resources", [])
        return [each for each in found if each["type"] != "pulumi:pulumi:Stack"]

    def resources(self) -> list[str]:
        """URNs of what the stack's state holds, the stack itself left out."""
        return [each["urn"] for each in self.state()]

    def outputs(self) -> dict[str, Any]:
        """`pulumi stack output`."""
        found = self._run("stack", "output", "--json", "--stack", self.name)
        value: dict[str, Any] = json.loads(found.text)
        return value

    def _checked(self, fails: bool, command: str, *options: str) -> Run:
        run = self._run(command, "--non-interactive", "--stack", self.name, *options, check=False)
        assert bool(run.code) == fails, run.text
        assert "Traceback" not in run.text or "-v=9" in options, run.text
        return run

    def _run(self, *words: str, check: bool = True) -> Run:
        done = subprocess.run(
            ["pulumi", *words],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=self.seconds,
        )
        assert not (check and done.returncode), done.stdout
        return Run(done.returncode, done.stdout)


def environment(folder: Path) -> dict[str, str]:
    """What the CLI needs to know of the world, with its state in the folder."""
    return {
        **os.environ,
        "PULUMI_BACKEND_URL": f"file://{folder}/state",
        "PULUMI_CONFIG_PASSPHRASE": "practice",
        "NO_COLOR": "1",
    }


def settings(host: Host, **changes: Any) -> dict[str, Any]:
    """What the stack config says about a practice host."""
    found = {
        "address": host.address,
        "port": host.port,
        "key_file": str(host.key_path),
        "host_key": host.host_key,
        "gpus": 8,
        **changes,
    }
    return {key: value for key, value in found.items() if value is not None}


def serves(host: Host, key: str = "") -> str | None:
    """The model that answers on the host's own port now, asked from outside."""
    asked = urllib.request.Request(f"http://{host.address}:8000/v1/models")
    if key:
        asked.add_header("Authorization", f"Bearer {key}")
    try:
        with urllib.request.urlopen(asked, timeout=30) as answer:
            model: str = json.load(answer)["data"][0]["id"]
            return model
    except OSError:
        return None


def unit(host: Host, name: str, field: str) -> str:
    """One property of a unit on the host."""
    return host.exec(["systemctl", "show", name, f"--property={field}", "--value"]).stdout.strip()


def enabled(host: Host) -> set[str]:
    """The model units that start at boot."""
    return {name for name in UNITS.values() if unit(host, name, "UnitFileState") == "enabled"}


def used_mib(host: Host) -> list[int]:
    """Memory used on each GPU, in MiB."""
    shown = host.exec(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"])
    return [int(line) for line in shown.stdout.split()]


def logins(host: Host) -> int:
    """How often somebody logged in over SSH so far."""
    return _ssh_log(host).count("Accepted publickey")


def remote_commands(host: Host) -> int:
    """How many commands were run over SSH so far, as sshd itself counts them."""
    return _ssh_log(host).count("Starting session: command ")


def _ssh_log(host: Host) -> str:
    return host.exec(["journalctl", "--unit=ssh.service", "--output=cat", "--no-pager"]).stdout


def events(host: Host) -> list[str]:
    """Phases in the host's event log, in order, each stretch once."""
    found: list[str] = []
    for line in host.exec(["cutover", "log"]).stdout.splitlines():
        phase = line.split()[3].rstrip(":")
        if not found or found[-1] != phase:
            found.append(phase)
    return found


def start_detached(host: Host, *argv: str) -> int:
    """Starts a program on the host in a session of its own; returns its pid there."""
    shell = 'setsid "$@" </dev/null >/dev/null 2>&1 & echo $!'
    return int(host.exec(["sh", "-c", shell, "sh", *argv]).stdout)


def alive(host: Host, pid: int) -> bool:
    """Whether a process of that number runs on the host."""
    return host.exec(["kill", "-0", str(pid)], check=False).returncode == 0
