"""What is true on the hosts, asked by a process of its own while the program goes on."""

from __future__ import annotations

import atexit
import json
import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from components.question import Login, Question, Reply

if TYPE_CHECKING:
    from cutover.facts import Answer
    from cutover.host import Host, Keys


class Asker:
    """The process that asks; started first of all, since it takes a while until it can."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "components.asking"],
            cwd=Path(__file__).parents[1],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        atexit.register(self._process.kill)  # where wrong config ends the run before any question

    def ask(self, questions: Mapping[str, Question]) -> dict[str, Answer]:
        """Every host's answer, by its name; waits for all of them, half a minute at most."""
        import build

        name = build.build().digest[:16]
        replies, _ = self._process.communicate(pickle.dumps((questions, name)))
        if self._process.returncode:
            raise RuntimeError("the process that asks the hosts broke off, for the reason above")
        return {name: _answer(reply) for name, reply in pickle.loads(replies).items()}


def question(
    host: Host, keys: Keys, order: str, texts: Mapping[str, str], others: Sequence[str]
) -> Question:
    """What one host is asked; `order` is JSON, `others` are the units of other deployments.

    Of the `texts` the environment file has secrets: they travel on standard input only.
    """
    login = Login(host.address, host.port, host.user, host.host_key, keys.host, host.key_passphrase)
    jump, hop = None, host.proxy
    if hop:
        phrase = None if hop.key_file else host.key_passphrase
        jump = Login(hop.address, hop.port, hop.user, hop.host_key, keys.proxy, phrase)
    line = json.dumps({"order": json.loads(order), **texts, "others": others})
    return Question(login, jump, host.uses_sudo, line)


def _answer(reply: Reply) -> Answer:
    from cutover.facts import NoFacts, parse

    if reply.reason:
        return NoFacts(reply.reason, reply.stranger, reply.address)
    return parse(reply.line, reply.host_key, reply.jump_key)
