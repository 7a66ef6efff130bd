"""What goes between the program and the process that asks the hosts; light to import for both."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Login:
    """How to get into one machine."""

    address: str
    port: int
    user: str
    host_key: str | None
    key: str | None
    """Without one, the keys of the SSH agent."""
    passphrase: str | None


@dataclass(frozen=True)
class Question:
    """One host, and what its agent is asked."""

    login: Login
    jump: Login | None
    sudo: bool
    line: str


@dataclass(frozen=True)
class Reply:
    """What came back: the agent's line and the keys that the machines have shown, or why not."""

    line: str = ""
    host_key: str = ""
    jump_key: str = ""
    reason: str = ""
    stranger: str = ""
    """Field of the pin that differs from the key shown, and where that was."""
    address: str = ""
