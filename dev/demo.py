"""Serves a model on a practice GPU host, switches to another, and shows what happened."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).parent))

from sandbox import Host, hosts, start

ROOT = Path(__file__).resolve().parent.parent
STACK = "sandbox"
# A copy, so that trying things out changes no file that git knows.
CONFIG = ROOT / ".local" / f"Pulumi.{STACK}.yaml"
FIRST, SECOND = "kimi-k25-int4-sglang", "minimax-m25"
QUESTION = "What is the capital of France? Answer in one word."


def main() -> None:
    """The whole story; stops at the first command that fails."""
    began = time.monotonic()
    host = practice_host()
    write_config(host)
    pulumi("stack", "select", "--create", STACK, quiet=True)
    title(f"Serve {FIRST}")
    activate(FIRST)
    pulumi("up", "--yes", "--skip-preview")
    title(f"What a switch to {SECOND} would change")
    activate(SECOND)
    pulumi("preview", "--diff")
    title("Switch")
    pulumi("up", "--yes", "--skip-preview")
    title("The result")
    pulumi("stack", "output", "--json")
    run("ssh to the host: cutover status", host.ssh("cutover status").stdout)
    run(f"ask {SECOND}: {QUESTION}", ask(host))
    seconds = time.monotonic() - began
    print(f"\n{SECOND} serves at http://{host.address}:8000 ({seconds:.0f} s in all). Next:")
    config = f"--config-file {CONFIG.relative_to(ROOT)}"
    print(f'  eval "$(make -s env)"; pulumi preview --stack {STACK} {config}  # by hand')
    print("  python3 dev/sandbox enter practice cutover log  # what the host did")
    print("  make stop                                       # stop the practice host")


def practice_host() -> Host:
    """The running practice host of that name, or a new one."""
    there = {host.name: host for host in hosts()}.get("practice")
    if there and there.state == "up":
        return there
    title("Start a practice GPU host (the first time, this makes its root file system)")
    if there:
        there.stop()
    # What the state says about an older practice host is not true of a new one.
    forget = ["pulumi", "stack", "rm", STACK, "--force", "--yes", "--preserve-config"]
    subprocess.run(forget, cwd=ROOT, capture_output=True)
    return start("practice")


def write_config(host: Host) -> None:
    """The stack's config with this host's address and key."""
    config = yaml.safe_load((ROOT / f"Pulumi.{STACK}.yaml").read_text())
    settings = config["config"]["cutover:hosts"]["practice"]
    settings.update(
        address=host.address,
        port=host.port,
        key_file=str(host.key_path),
        host_key=host.host_key,
    )
    if CONFIG.exists():
        old = yaml.safe_load(CONFIG.read_text())
        config.update({key: value for key, value in old.items() if key != "config"})
    CONFIG.parent.mkdir(exist_ok=True)
    CONFIG.write_text(yaml.safe_dump(config))


def activate(deployment: str) -> None:
    """The one line that switches the model."""
    pulumi("config", "set", "active", deployment)


def ask(host: Host) -> str:
    """The model's answer to a question, over the network."""
    names = urllib.request.urlopen(f"http://{host.address}:8000/v1/models", timeout=10)
    question = {
        "model": json.load(names)["data"][0]["id"],
        "messages": [{"role": "user", "content": QUESTION}],
    }
    request = urllib.request.Request(
        f"http://{host.address}:8000/v1/chat/completions",
        json.dumps(question).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        text: str = json.load(answer)["choices"][0]["message"]["content"]
        return text


def pulumi(*words: str, quiet: bool = False) -> None:
    """Runs and shows one command of the CLI."""
    command = ["pulumi", *words]
    if words[0] != "stack":
        command += ["--stack", STACK, "--config-file", str(CONFIG)]
    if words[0] in ("up", "preview"):
        command.append("--non-interactive")
    if not quiet:
        shown = shlex.join(word for word in command if word != "--non-interactive")
        print(f"$ {shown.replace(str(ROOT) + os.sep, '')}", flush=True)
    done = subprocess.run(command, cwd=ROOT, capture_output=quiet, text=True)
    if done.returncode:
        sys.exit(f"pulumi {words[0]} failed{': ' + done.stderr if quiet else ''}")


def title(text: str) -> None:
    """A heading."""
    print(f"\n== {text} ==", flush=True)


def run(what: str, text: str) -> None:
    """What was done, and what it said."""
    print(f"$ {what}\n{text.rstrip()}", flush=True)


if __name__ == "__main__":
    main()
