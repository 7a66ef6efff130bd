"""What strikes: each fault as it comes in real life, on a practice host."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable

from cutover_agent.clock import Deadline, wait_for
from sandbox import Host
from tests.faults import disk, hold
from tests.faults.client import Client
from tests.faults.matrix import Row

SESSIONS = "for p in $(pgrep -f '^sshd: .*@notty'); do kill -KILL $p; done"


def kill_client(host: Host, client: Client) -> None:
    client.kill()


def interrupt_client(host: Host, client: Client) -> None:
    client.interrupt()


def cut_session(host: Host, client: Client) -> None:
    host.exec(["sh", "-c", SESSIONS], check=False)


def silence(host: Host, client: Client) -> None:
    os.kill(forwarder(host), signal.SIGSTOP)


def speak(host: Host) -> None:
    """Ends a silence; harmless without one."""
    os.kill(forwarder(host), signal.SIGCONT)


def forwarder(host: Host) -> int:
    """The process that carries the host's connections."""
    return int((host.folder / "forwarder.pid").read_text().split(":")[0])


def kill_agent(host: Host, _: object) -> None:
    host.exec(["systemctl", "kill", "--signal=SIGKILL", "cutover-*.service"], check=False)


def cut_power(host: Host, client: Client) -> None:
    host.power_off()
    host.boot()


def reboot(host: Host, client: Client) -> None:
    before = host.leader
    host.exec(["systemctl", "--no-block", "reboot"], check=False)
    wait(lambda: host.leader not in (None, before) and host.state == "up", 90, "boots again")


def fill_disk(host: Host, client: Client) -> None:
    disk.fill(host)


def take_gpu(host: Host, client: Client) -> None:
    host.write(hold.GPUS, json.dumps({"count": 8, "missing": [3]}))


def nothing(host: Host, client: Client) -> None:
    """The new model itself is the fault."""


AT_ONCE: dict[str, Callable[[Host, Client], None]] = {
    "client SIGKILL": kill_client,
    "client SIGINT": interrupt_client,
    "SSH session cut": cut_session,
    "network silent": silence,
    "agent SIGKILL": kill_agent,
    "power cut": cut_power,
    "orderly reboot": reboot,
    "reboot while rolling back": reboot,
    "disk full": fill_disk,
    "a GPU disappears": take_gpu,
}

MISBEHAVIOUR: dict[tuple[str, str], dict[str, object]] = {
    ("new model crashes", "ready"): {"crash": "starting"},
    ("new model crashes", "smoke"): {"crash": "serving", "token_seconds": 2},
    ("new model crash-loops slowly", "ready"): {"crash": "loading"},
    ("new model hangs", "ready"): {"hang": "loading"},
    ("new model hangs", "smoke"): {"never_answers": True},
    ("new model answers wrongly", "smoke"): {"answer": "I do not know"},
    ("new model never gets ready", "ready"): {"health_status": 503},
    ("new model is another", "ready"): {"served_as": "somebody-else"},
    ("reboot while rolling back", "ready"): {"crash": "loading"},
    ("reboot while rolling back", "smoke"): {"answer": "I do not know"},
}


def misbehaviour(row: Row) -> dict[str, object]:
    """What the new model does wrong in a row; in a roll-back something has to."""
    if row.phase == "roll-back":
        return {"crash": "loading"}
    return MISBEHAVIOUR.get((row.fault, row.phase), {})


def wait(
    check: Callable[[], object], seconds: float, what: str, said: Callable[[], str] = str
) -> None:
    """Polls until something is so; an error names it, and what was said, where it never is."""
    met = wait_for(lambda: bool(check()), Deadline(seconds))
    assert met, f"within {seconds:.0f} s: {what}: {said()}"
