"""One practice host and its stack, on which row after row strikes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path

import yaml

from cutover_agent.clock import Deadline, wait_for
from sandbox import Host
from tests.acceptance.stack import MODELS, SGLANG, UNITS, VLLM, Stack, settings, start_detached
from tests.faults import disk, hold, inject
from tests.faults.matrix import REBOOT_IN_ROLL_BACK, Row
from tests.faults.sight import Sight, look

SCALE = 15
"""Every time of this bench is a real one over this, so that all keep their ratios."""
LIMITS = {"load": 900, "stop": 120, "smoke": 120}
FREEING = {"release": 60, "gate": 30, "settle": 60, "kill": 15}
HOOK = 150
ENGINE = {"load_seconds": 36, "stop_seconds": 21, "token_seconds": 1.2}
SLACK_SECONDS = 20
"""How long a row that has missed its bound is still watched, to say how it ended."""


def scaled(times: dict[str, float]) -> dict[str, float]:
    """Times of a real box, in seconds, as they are here."""
    return {name: seconds / SCALE for name, seconds in times.items()}


@dataclass
class Result:
    """One row of the table."""

    phase: str
    fault: str
    expected: str
    end: str = ""
    seconds: float = 0.0
    """From the stop of the old model to a verified service; from the fault where that came first.
    """
    bound: int = 0
    """What `stage` printed; a boot, where there was one, as long as it took."""
    canary: str = "alive"
    problems: list[str] = field(default_factory=list)

    @property
    def row(self) -> dict[str, object]:
        """As the table has it."""
        return {**vars(self), "pass": not self.problems}


class Bench:
    """Serves one of two models; a row switches to the other one, and a fault strikes."""

    def __init__(self, host: Host, folder: Path) -> None:
        self.host, self.rows = host, 0
        hold.prepare(host)
        self._behave({})
        self.stack = Stack(folder)
        hooks = {"before_stop": hold.hook("drain"), "after_commit": hold.hook("commit")}
        self.settings = settings(
            host,
            hooks={**hooks, "seconds": HOOK // SCALE},
            deadlines={name: seconds // SCALE for name, seconds in FREEING.items()},
        )
        for name in (SGLANG, VLLM):
            self._declare(name)
        self._up(SGLANG)

    def strike(self, row: Row) -> Result:
        """Switches to the other model, lets the fault strike, and looks at the end."""
        self.rows += 1
        result = Result(row.phase, row.fault, row.expected)
        before = self._start_of_row()
        old, new = (SGLANG, VLLM) if before.model == MODELS[SGLANG] else (VLLM, SGLANG)
        self._declare(new)
        self._behave({MODELS[new]: inject.misbehaviour(row)})
        if row.fault == "disk full":
            disk.make_small(self.host)
        canary = start_detached(self.host, "sleep", "3600") if row.canary else 0
        result.canary = "alive" if canary else "not applicable"
        hold.hold(self.host, row.phase)
        with self._client(new, row) as client:
            self._await_phase(row, before)
            struck = time.monotonic()
            inject.AT_ONCE.get(row.fault, inject.nothing)(self.host, client)
            boot = 0 if row.canary else ceil(time.monotonic() - struck)
            hold.let_go(self.host, row)
            result.bound = self._promised() + boot
            self._await_end(before, result.bound)
            seen = look(self.host, canary)
            result.seconds = round(time.monotonic() - min(struck, self.stopped), 1)
        self._judge(row, result, before, self._without_traces(seen, canary), (old, new))
        if row.answered and (client.returncode == 0) != (row.expected == "new"):
            result.problems.append(f"the client exits {client.returncode}: {self._said()}")
        self._again(result, new)
        return result

    # What a row begins with.

    def _start_of_row(self) -> Sight:
        """Who serves now; after a row that broke off, whatever it left is mended."""
        self.stopped = float("inf")
        seen = look(self.host)
        if [seen.model] not in ([MODELS[SGLANG]], [MODELS[VLLM]]):
            self._up(SGLANG)
            seen = look(self.host)
        return seen

    def _declare(self, name: str) -> None:
        """Writes a deployment that differs from the row before, in its unit and its environment."""
        path = self.stack.folder / "deployments" / f"{name}.yaml"
        value = yaml.safe_load(path.read_text())
        value["timeouts"] = {limit: seconds // SCALE for limit, seconds in LIMITS.items()}
        value["env"] = {**value.get("env", {}), "ROW": str(self.rows)}
        value["secrets"] = ["ROW_SECRET"]
        path.write_text(yaml.safe_dump(value))
        self.stack.configure(secrets={"ROW_SECRET": f"secret-{self.rows}"})

    def _behave(self, models: dict[str, dict[str, object]]) -> None:
        self.host.write(
            "/etc/practice/engine.json", json.dumps({**scaled(ENGINE), "models": models})
        )

    def _up(self, active: str) -> None:
        self.stack.configure(active=active, hosts={"box": self.settings})
        self.stack.up()

    @contextmanager
    def _client(self, new: str, row: Row) -> Iterator[inject.Client]:
        """`pulumi up` in the background; at the end everything is mended, and it is gone."""
        self.stack.configure(active=new)
        words = ["pulumi", "up", "--yes", "--skip-preview", "--non-interactive"]
        client = subprocess.Popen(
            [*words, "--stack", self.stack.name],
            cwd=self.stack.folder,
            env=self.stack.env,
            stdin=subprocess.DEVNULL,
            stdout=self._log.open("wb"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield client
        finally:
            self._mend(client, row)

    def _mend(self, client: inject.Client, row: Row) -> None:
        if row.fault == "network silent":
            inject.kill_client(self.host, client)  # it may wait for ever
            inject.speak(self.host)
        disk.make_usual(self.host)
        hold.release_all(self.host)
        self._behave({})
        try:
            client.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(client.pid, signal.SIGKILL)
            client.wait()
        if list((self.stack.folder / "state/.pulumi/locks").rglob("*.json")):
            self.stack._run("cancel", "--yes", "--stack", self.stack.name)

    # Until it is over.

    def _record(self, before: Sight) -> dict[str, object]:
        """The record of this row's transaction; empty before there is one."""
        state = hold.newest_state(self.host)
        if not state or state["id"] == before.state.get("id"):
            return {}
        if "release" in state["begun"]:
            self.stopped = min(self.stopped, time.monotonic())
        return state

    def _await_phase(self, row: Row, before: Sight) -> None:
        late = row.fault == REBOOT_IN_ROLL_BACK or row.phase == "roll-back"
        phase = "restore" if late else row.phase

        def there() -> bool:
            return phase in self._record(before).get("begun", ())  # type: ignore[operator]

        inject.wait(there, 120, f"the transaction comes to {phase}", self._said)

    def _await_end(self, before: Sight, seconds: int) -> None:
        """Waits for the outcome, whoever brings it about."""
        pattern = ["cutover-*", "--state=active,activating,deactivating", "--no-legend", "--plain"]

        def ended() -> bool:
            over = self._record(before).get("outcome")
            busy = self.host.exec(["systemctl", "list-units", *pattern], check=False).stdout
            return bool(over) and not busy.strip()

        wait_for(ended, Deadline(seconds + SLACK_SECONDS), 0.1)

    def _without_traces(self, seen: Sight, canary: int) -> Sight:
        """The same a moment later: systemd forgets a unit not before its process is gone."""
        wait_for(lambda: not look(self.host).left, Deadline(5), 0.2)
        return look(self.host, canary) if seen.left else seen

    def _promised(self) -> int:
        """The bound that `stage` printed."""
        found = re.findall(r"at the latest (\d+) s after the stop", self._log.read_text())
        return int(found[-1])

    # How it ended.

    def _judge(
        self, row: Row, result: Result, before: Sight, seen: Sight, sides: tuple[str, str]
    ) -> None:
        old, new = sides
        outcome, problems = seen.state.get("outcome", ""), result.problems
        result.end = {MODELS[old]: "old", MODELS[new]: "new"}.get(seen.model, "nothing")
        if outcome == "dead-end":
            result.end = f"dead end: {seen.state['dead_end']}"
        right = new if row.expected == "new" else old
        if result.end != row.expected:
            problems.append(f"{result.end}, not {row.expected} ({outcome or 'no outcome'})")
        if seen.state.get("id") == before.state.get("id") or not outcome:
            problems.append("the transaction has no end")
        if seen.enabled != [UNITS[right]]:
            problems.append(f"enabled: {seen.enabled}")
        if result.end in ("old", "new") and not seen.running == seen.holders == [UNITS[right]]:
            problems.append(f"running: {seen.running}, on the GPUs: {seen.holders}")
        if right == old and seen.files != before.files:
            problems.append("files are not as they were")
        if right == new and f"ROW={self.rows}" not in "".join(seen.files[new].values()):
            problems.append("the new files are not in place")
        if seen.left:
            problems.append(f"left over: {seen.left}")
        if not seen.canary:
            problems.append("the canary died")
        if result.seconds > result.bound:
            problems.append(f"{result.seconds} s, later than {result.bound} s")

    def _again(self, result: Result, new: str) -> None:
        """One more `up`, with the cause mended, converges on the new model."""
        run = self.stack._run("up", "--yes", "--skip-preview", "--non-interactive",
                              "--stack", self.stack.name, check=False)  # fmt: skip
        seen = look(self.host)
        there = seen.model == MODELS[new] and seen.enabled == seen.running == [UNITS[new]]
        if run.code or not there or f"secret-{self.rows}" not in str(seen.files[new]):
            result.problems.append(f"the second up does not converge: {run.text[-800:]}")

    @property
    def _log(self) -> Path:
        return self.stack.folder / "up.log"

    def _said(self) -> str:
        return self._log.read_text()[-800:] if self._log.exists() else ""
