"""What the agent's looks at a host cost, beside `fuser`: who holds a GPU, and the facts."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from functools import partial

import build
from bench.comparison import OURS, Comparison, in_turn, seconds
from bench.fleet import Fleet
from bench.options import Options
from sandbox import Host

PROCESSES = (100, 2000)
AGENT = "/root/cutover.pyz"
CROWD = """\
import os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.setpgid(0, 0)
for _ in range(int(sys.argv[1])):
    if not os.fork():
        signal.pause()
print(os.getpid(), flush=True)
signal.pause()
"""


def compare(fleet: Fleet, options: Options) -> Iterator[Comparison]:
    """On a host that runs this many processes beside the holders of its GPUs."""
    host = fleet.host("box1")
    data = base64.b64encode(build.build().data).decode()
    host.exec(["sh", "-c", f"base64 -d >{AGENT}"], text=data)
    for count in PROCESSES[:1] if options.quick else PROCESSES:
        leader = gather(host, count)
        try:
            looks: dict[str, Callable[[], object]] = {
                OURS: partial(host.exec, ["python3", "-I", AGENT, "plan"]),
                "fuser": partial(host.exec, ["sh", "-c", "fuser -s /dev/nvidia*; true"]),
            }
            ways = {way: partial(seconds, look) for way, look in looks.items()}
            yield Comparison(
                f"who holds a GPU, {count} processes", "s", in_turn(options.runs, ways)
            )
            ask = partial(host.exec, ["python3", "-I", AGENT, "facts"], text="{}\n")
            figures = in_turn(options.runs, {OURS: partial(seconds, ask)})
            yield Comparison(f"facts, {count} processes", "s", figures)
        finally:
            host.exec(["kill", "-KILL", "--", f"-{leader}"])


def gather(host: Host, count: int) -> str:
    """Starts so many processes that do nothing, in a group of their own; its number."""
    shell = 'python3 -c "$0" "$1" </dev/null >/run/crowd 2>&1 & until test -s /run/crowd; do '
    shell += "sleep 0.05; done; cat /run/crowd; rm /run/crowd"
    return host.exec(["sh", "-c", shell, CROWD, str(count)]).stdout.strip()
