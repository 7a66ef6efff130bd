"""A file system of its own for the agent's memory, so that it can be full."""

from __future__ import annotations

from sandbox import Host
from tests.faults.look import STORE

MAKE_SMALL = f"""
cp -a {STORE} /root/store
mount -t tmpfs -o size=4m,mode=700 tmpfs {STORE}
cp -a /root/store/. {STORE}
rm -rf /root/store
"""
MAKE_USUAL = f"""
mountpoint -q {STORE} || exit 0
rm -f {STORE}/filler
cp -a {STORE} /root/store
umount {STORE}
rm -rf {STORE}
mv /root/store {STORE}
"""


def make_small(host: Host) -> None:
    """A few MiB, with what was there."""
    host.exec(["sh", "-ec", MAKE_SMALL])


def fill(host: Host) -> None:
    """Leaves not a byte."""
    host.exec(["sh", "-c", f"cat /dev/zero > {STORE}/filler"], check=False)


def make_usual(host: Host) -> None:
    """Room again; harmless where there is room."""
    host.exec(["sh", "-ec", MAKE_USUAL])
