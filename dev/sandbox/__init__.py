"""Practice GPU hosts: a real systemd and sshd, simulated GPUs and engines."""

from sandbox.errors import SandboxError
from sandbox.host import Host, find, hosts
from sandbox.starting import start

__all__ = ["Host", "SandboxError", "find", "hosts", "start"]
