"""The switch as it is done by hand, as one script: kill, sleep, kill again, sleep, look, start."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cutover.catalogue import load_catalogue
from cutover.units import render_environment, render_unit
from sandbox import Host
from tests.acceptance.stack import ROOT

SLEEPS = (5, 3)
"""Seconds after the first kill and after the second."""

SCRIPT = """\
systemctl list-units --all --no-legend 'vllm-*' 'sglang-*' >/dev/null
pkill -{signal} -f '/opt/(vllm|sglang)/bin/python3|VLLM::|sglang::'
{first_sleep}
fuser -s -k -KILL /dev/nvidia[0-9]*
{second_sleep}
rm -f /dev/shm/psm_* /dev/shm/sem.mp-* /dev/shm/*vllm* /dev/shm/*nccl*
nvidia-smi --query-gpu=index,memory.used --format=csv,noheader | head -n 1
cp /root/{unit} /etc/systemd/system/{unit}
systemctl daemon-reload
systemctl enable --quiet {unit}
systemctl start {unit}
"""


@dataclass(frozen=True)
class Ritual:
    """A way to switch the models of a host on which nothing of ours is."""

    signal: str
    sleeps: bool

    @property
    def name(self) -> str:
        """For the table."""
        return f"by hand, {self.signal}{'' if self.sleeps else ', no sleeps'}"

    def switch(self, host: Host, unit: str) -> None:
        """Runs on the host over one SSH session, which spares it the lines between the steps."""
        first, second = [f"sleep {seconds}" if self.sleeps else "" for seconds in SLEEPS]
        text = SCRIPT.format(
            signal=self.signal.removeprefix("SIG"),
            unit=unit,
            first_sleep=first,
            second_sleep=second,
        )
        # On standard input: in its own command line pkill would find the shell.
        done = host.ssh("sh", text=text)
        assert done.returncode == 0, done.stderr


RITUALS = [Ritual(signal, sleeps) for signal in ("SIGKILL", "SIGTERM") for sleeps in (False, True)]


def prepare(host: Host, serves: str, other: str) -> dict[str, str]:
    """Lays both units down, written by hand, and starts the first; unit names by deployment."""
    catalogue = load_catalogue(ROOT / "deployments")
    units = {name: catalogue[name].unit for name in (serves, other)}
    for name, unit in units.items():
        host.write(f"/root/{unit}", by_hand(render_unit(catalogue[name])))
        host.write(f"/etc/cutover/{name}.env", render_environment(catalogue[name], {}), 0o600)
    first = units[serves]
    host.exec(["cp", f"/root/{first}", f"/etc/systemd/system/{first}"])
    host.exec(["systemctl", "daemon-reload"])
    host.exec(["systemctl", "start", first])
    return units


def by_hand(unit_text: str) -> str:
    """The same unit as somebody writes it who has no agent: a killed server stays dead."""
    text = re.sub(r"(?m)^ExecStartPre=.*\n", "", unit_text)
    return re.sub(r"(?m)^Restart=.*$", "Restart=no", text)
