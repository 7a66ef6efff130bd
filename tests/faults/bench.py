"""One practice host and its stack, on which row after row strikes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cutover_agent.bound import bound
from cutover_agent.clock import Deadline, wait_for
from cutover_agent.order import Order
from sandbox import Host
from tests.acceptance.stack import MODELS, SGLANG, UNITS, VLLM, Stack, enabled, settings
from tests.faults import inject
from tests.faults.matrix import HOST, REBOOT_IN_ROLL_BACK, Row

SCALE = 30
"""One second here is half a minute of a real box: load 900 s, stop 120 s, smoke 120 s."""
BOOT_SECONDS = 60
HOLD_SECONDS = 3
ENGINE = {"load_seconds": 2.5, "stop_seconds": 1.5, "token_seconds": 0.08}
HOLD = "/run/practice-hold"
STATES = f"{inject.STORE}/transactions/*/state.json"
HOOK = f'[ ! -e {HOLD}/"$1" ] || sleep {HOLD_SECONDS}'

# systemd runs it at each daemon-reload, which so takes a while in the phase that is held.
GENERATOR = f"""#!/bin/sh
newest=$(ls -t {STATES} 2>/dev/null | head -n 1)
for phase in install start; do
    [ -e {HOLD}/$phase ] && grep -q "\\"$phase\\"" "$newest" && sleep {HOLD_SECONDS}
done
exit 0
"""
SMALL_DISK = f"""
cp -a {inject.STORE} /root/store
mount -t tmpfs -o size=4m,mode=700 tmpfs {inject.STORE}
cp -a /root/store/. {inject.STORE}
"""
"""Gives the agent's memory a file system of its own, so that it can be full."""
USUAL_DISK = f"""
mountpoint -q {inject.STORE} || exit 0
rm -rf /root/store
cp -a {inject.STORE} /root/store
umount {inject.STORE}
rm -rf {inject.STORE}
mv /root/store {inject.STORE}
"""
ASK = """
import json, urllib.request
url = "http://127.0.0.1:8000/v1/models"
print(json.load(urllib.request.urlopen(url, timeout=5))["data"][0]["id"])
"""


@dataclass
class Result:
    """One row of the table."""

    phase: str
    fault: str
    expected: str
    end: str = ""
    seconds: float = 0.0
    bound: int = 0
    passed: bool = False
    reason: str = ""
    problems: list[str] = field(default_factory=list)


class Bench:
    """Serves one of two models; a row switches to the other one, and a fault strikes."""

    def __init__(self, host: Host, folder: Path) -> None:
        self.host = host
        self._prepare()
        self.stack = Stack(folder)
        for name in (SGLANG, VLLM):
            path = folder / "deployments" / f"{name}.yaml"
            text = path.read_text()
            for key, seconds in (("load", 900), ("stop", 120), ("smoke", 120)):
                text = text.replace(f"{key}: {seconds}", f"{key}: {seconds // SCALE}")
            path.write_text(text)
        hooks = {
            "before_stop": ["sh", "-c", HOOK, "sh", "drain"],
            "after_commit": ["sh", "-c", HOOK, "sh", "commit"],
            "seconds": 10,
        }
        self.stack.configure(active=SGLANG, hosts={"box": settings(host, hooks=hooks)})
        self.stack.up()

    def _prepare(self) -> None:
        self.host.write("/etc/systemd/system-generators/practice-hold", GENERATOR, 0o755)
        self.host.write("/etc/practice/engine.json", json.dumps(ENGINE))

    # One row.

    def strike(self, row: Row) -> Result:
        """Switches to the other model, lets the fault strike, and looks at the end."""
        old, new = self._sides()
        result = Result(row.phase, row.fault, row.expected)
        self._misbehave(row, new)
        self._hold(row)
        if row.fault == "disk full":
            self.host.exec(["sh", "-ec", SMALL_DISK])
        canary = self._canary()
        known = self._newest()
        self.stack.configure(active=new)
        client = self._client()
        try:
            self._await_phase(row, known, client)
            struck = time.monotonic()
            inject.AT_ONCE.get(row.fault, inject.nothing)(self.host, client)
            result.bound = self._bound(row)
            outcome = self._await_end(known, result.bound)
            result.seconds = round(time.monotonic() - struck, 1)
            self._judge(row, result, outcome, old, new)
            if row.fault not in (*HOST, REBOOT_IN_ROLL_BACK) and not self._alive(canary):
                result.problems.append("the canary died")
        finally:
            self._heal(client)
        self._again(result, new)
        result.passed = not result.problems
        return result

    def _misbehave(self, row: Row, new: str) -> None:
        how = inject.MISBEHAVIOUR.get((row.fault, row.phase))
        if row.phase == "roll-back":
            how = {"crash": "loading"}
        models = {MODELS[new]: how} if how else {}
        self.host.write("/etc/practice/engine.json", json.dumps({**ENGINE, "models": models}))

    def _hold(self, row: Row) -> None:
        self.host.write(f"{HOLD}/{row.phase}", "")
        if row.phase in ("stage", "gate"):
            self.host.write("/etc/practice/gpu.json", json.dumps({"count": 8, "delay_seconds": 1}))

    def _client(self) -> inject.Client:
        words = ["pulumi", "up", "--yes", "--skip-preview", "--non-interactive"]
        return subprocess.Popen(
            [*words, "--stack", self.stack.name],
            cwd=self.stack.folder,
            env=self.stack.env,
            stdin=subprocess.DEVNULL,
            stdout=(self.stack.folder / "up.log").open("wb"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def _await_phase(self, row: Row, known: str, client: inject.Client) -> None:
        strikes = row.phase
        if row.fault == REBOOT_IN_ROLL_BACK or row.phase == "roll-back":
            strikes = "restore"

        def there() -> bool:
            state = self._state()
            return bool(state and state["id"] != known and strikes in state["begun"])

        inject.wait(there, 120, f"the transaction comes to {strikes}", self._said)

    def _await_end(self, known: str, seconds: int) -> str:
        """Waits for the outcome, whoever brings it about; the last one that is there if none."""

        def ended() -> bool:
            state = self._state()
            return bool(state and state["id"] != known and state["outcome"] and not self._busy())

        wait_for(ended, Deadline(seconds), 0.2)
        state = self._state()
        return str(state["outcome"]) if state else ""

    def _judge(self, row: Row, result: Result, outcome: str, old: str, new: str) -> None:
        asked = self._asked()
        names = {MODELS[old]: "old", MODELS[new]: "new"}
        result.end = names.get(asked, "nothing") if outcome != "dead-end" else "dead end"
        if result.end != row.expected:
            result.problems.append(f"{result.end}, not {row.expected} ({outcome})")
        if outcome == "" and row.fault != "disk full":
            result.problems.append("the transaction has no end")
        right = {UNITS[new if row.expected == "new" else old]}
        if enabled(self.host) != right:
            result.problems.append(f"enabled: {sorted(enabled(self.host))}")
        if row.fault != "disk full" and not wait_for(lambda: not self._left(), Deadline(10), 0.2):
            result.problems.append(f"left over: {self._left()}")

    def _left(self) -> str:
        """Traces of a trial, and units of the agent that are not gone."""
        shell = (
            "ls -d /run/systemd/system/*.d/90-cutover* 2>/dev/null; "
            "systemctl list-units --plain --no-legend --state=failed 'cutover-*'"
        )
        return self.host.exec(["sh", "-c", shell], check=False).stdout.strip()

    def _again(self, result: Result, new: str) -> None:
        """A second `up` with the cause mended converges on the new model."""
        run = self.stack._run("up", "--yes", "--skip-preview", "--non-interactive",
                              "--stack", self.stack.name, check=False)  # fmt: skip
        if run.code:
            result.problems.append(f"the second up fails: {run.text[-600:]}")
            run = self.stack.up()
        if self._asked() != MODELS[new] or enabled(self.host) != {UNITS[new]}:
            result.problems.append("the second up did not converge")

    def _sides(self) -> tuple[str, str]:
        """Who serves and who shall; after a row that broke off, whatever it left is mended."""
        for old, new in ((SGLANG, VLLM), (VLLM, SGLANG)):
            if self._asked() == MODELS[old]:
                return old, new
        self.stack.configure(active=SGLANG)
        self.stack.up()
        return SGLANG, VLLM

    def _heal(self, client: inject.Client) -> None:
        inject.speak(self.host)
        inject.empty_disk(self.host)
        self.host.exec(["sh", "-ec", USUAL_DISK])
        self.host.exec(["rm", "-rf", HOLD])
        self.host.write("/etc/practice/gpu.json", json.dumps({"count": 8}))
        self.host.write("/etc/practice/engine.json", json.dumps(ENGINE))
        try:
            client.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(client.pid, signal.SIGKILL)
            client.wait()
        (self.stack.folder / "state/.pulumi/locks").exists() and subprocess.run(
            ["pulumi", "cancel", "--yes", "--stack", self.stack.name],
            cwd=self.stack.folder, env=self.stack.env, capture_output=True, check=False,
        )  # fmt: skip

    # What the host shows.

    def _state(self) -> dict[str, Any] | None:
        shown = self.host.exec(["sh", "-c", f"cat $(ls -t {STATES} | head -n 1)"], check=False)
        try:
            found: dict[str, Any] = json.loads(shown.stdout)
            return found
        except ValueError:
            return None

    def _newest(self) -> str:
        state = self._state()
        return str(state["id"]) if state else ""

    def _busy(self) -> bool:
        pattern = ["cutover-*", "--state=active,activating,deactivating", "--no-legend", "--plain"]
        shown = self.host.exec(["systemctl", "list-units", *pattern], check=False).stdout
        return bool(shown.strip())

    def _asked(self) -> str:
        return self.host.exec(["python3", "-c", ASK], check=False).stdout.strip()

    def _bound(self, row: Row) -> int:
        folder = f"$(ls -td {inject.STORE}/transactions/*/ | head -n 1)"
        text = self.host.exec(["sh", "-c", f"cat {folder}/order.json"]).stdout
        order = Order.from_json(text)
        struck = row.fault in (*HOST, REBOOT_IN_ROLL_BACK)
        return bound(order, order).seconds + BOOT_SECONDS * struck

    def _canary(self) -> int:
        shell = "setsid python3 -c 'import time; time.sleep(3600)' >/dev/null 2>&1 & echo $!"
        return int(self.host.exec(["sh", "-c", shell]).stdout)

    def _alive(self, pid: int) -> bool:
        return self.host.exec(["kill", "-0", str(pid)], check=False).returncode == 0

    def _said(self) -> str:
        path = self.stack.folder / "up.log"
        return path.read_text()[-800:] if path.exists() else ""
