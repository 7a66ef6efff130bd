#!/usr/bin/python3 -IS
"""Holds memory on simulated GPUs as a notebook, a stray or a stubborn process would.

gpu-hold --gpu 5 --mib 1024 [--title "jupyter kernel"] [--ignore-term] [--seconds 60]
"""

import argparse
import signal
import sys
import time

sys.path[1:1] = ["/usr/lib/practice", "/usr/lib/python3/dist-packages"]

from practice_gpu import Allocation  # noqa: E402

parser = argparse.ArgumentParser(prog="gpu-hold")
parser.add_argument("--gpu", type=int, action="append", required=True, help="may be repeated")
parser.add_argument("--mib", type=int, default=1024, help="on each GPU; 0 opens the device only")
parser.add_argument("--title", help="what ps and nvidia-smi shall show")
parser.add_argument("--ignore-term", action="store_true")
parser.add_argument("--stop-seconds", type=float, default=0, help="from SIGTERM to the end")
parser.add_argument("--seconds", type=float, help="end by itself after that time")
said = parser.parse_args()


def stop(*_: object) -> None:
    """End, late if that was asked for."""
    time.sleep(said.stop_seconds)
    sys.exit(0)


signal.signal(signal.SIGTERM, signal.SIG_IGN if said.ignore_term else stop)
if said.title:
    from setproctitle import setproctitle  # type: ignore[import-not-found,unused-ignore]

    setproctitle(said.title)
held = [Allocation(gpu) for gpu in said.gpu]
for one in held:
    one.resize(said.mib)
print("holding", flush=True)
if said.seconds:
    time.sleep(said.seconds)
else:
    while True:
        signal.pause()
