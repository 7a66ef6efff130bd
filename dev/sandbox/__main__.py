"""`python3 dev/sandbox start|list|enter|stop`: practice hosts by hand."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sandbox import Host, SandboxError, find, hosts, start
from sandbox.host import ENVIRONMENT


def main() -> int:
    """Do what the command line says; the exit status."""
    parser = argparse.ArgumentParser(prog="sandbox", description="Practice GPU hosts.")
    parser.add_argument("--state", type=Path, help="the folder in which the hosts live")
    verbs = parser.add_subparsers(dest="verb", required=True)
    starting = verbs.add_parser("start", help="make and boot a host")
    starting.add_argument("name")
    starting.add_argument("--gpus", type=int, default=8)
    verbs.add_parser("list", help="name, address and state of every host")
    entering = verbs.add_parser("enter", help="a root shell, or a command, in a host")
    entering.add_argument("name")
    entering.add_argument("argv", nargs=argparse.REMAINDER)
    stopping = verbs.add_parser("stop", help="shut a host down and remove it")
    stopping.add_argument("name", nargs="?")
    stopping.add_argument("--all", action="store_true")
    said = parser.parse_args()
    try:
        return VERBS[said.verb](said)
    except SandboxError as error:
        print(f"sandbox: {error}", file=sys.stderr)
        return 1


def start_host(said: argparse.Namespace) -> int:
    """Make and boot one."""
    show(start(said.name, said.gpus, said.state))
    return 0


def list_hosts(said: argparse.Namespace) -> int:
    """A line for each."""
    for host in hosts(said.state):
        show(host)
    return 0


def enter_host(said: argparse.Namespace) -> int:
    """Become a shell in it."""
    argv = [word for word in said.argv if word != "--"] or ["bash", "-l"]
    host = find(said.name, said.state)
    command = host.enter_command(argv)
    os.execvpe(command[0], command, {**ENVIRONMENT, "TERM": os.environ.get("TERM", "dumb")})


def stop_hosts(said: argparse.Namespace) -> int:
    """Stop one or all."""
    if bool(said.name) == said.all:
        raise SandboxError("Say which host to stop: a name, or --all.")
    for host in hosts(said.state) if said.all else [find(said.name, said.state)]:
        host.stop()
    return 0


def show(host: Host) -> None:
    """Name, address, state and key."""
    print(f"{host.name}\t{host.address}:{host.port}\t{host.state}\t{host.key_path}")


VERBS = {"start": start_host, "list": list_hosts, "enter": enter_host, "stop": stop_hosts}

if __name__ == "__main__":
    sys.exit(main())
