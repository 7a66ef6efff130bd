"""One practice host and its stack, on which row after row strikes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from typing import Any

import yaml

from cutover_agent.clock import Deadline, wait_for
from sandbox import Host
from tests.acceptance.stack import MODELS, SGLANG, UNITS, VLLM, Stack, settings, start_detached
from tests.faults import disk, hold, inject, judge
from tests.faults.client import Client, up
from tests.faults.judge import Result, Switch
from tests.faults.matrix import CLIENT, REBOOT_IN_ROLL_BACK, Row
from tests.faults.sight import Sight, look

SCALE = 15
"""Every time of this bench is a real one over this, so that all keep their ratios."""
LIMITS = {"load": 900, "stop": 120, "smoke": 120}
FREEING = {"release": 60, "gate": 30, "settle": 60, "kill": 15}
HOOK = 150
ENGINE = {"load_seconds": 36, "stop_seconds": 21, "token_seconds": 1.2}
SLACK_SECONDS = 20
"""How long a row that has missed its bound is still watched, to say how it ended."""


class Bench:
    """Serves one of two models; a row switches to the other one, and a fault strikes."""

    def __init__(self, host: Host, folder: Path) -> None:
        self.host, self.rows, self.stopped = host, 0, 0.0
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
            self._declare(name, "row-0")
        self._serve(SGLANG)

    def strike(self, row: Row) -> Result:
        """Switches to the other model, lets the fault strike, and looks at the end."""
        before, switch = self._begin(row)
        result = Result(row.phase, row.fault, row.expected)
        canary = start_detached(self.host, "sleep", "3600") if row.canary else 0
        result.canary = "alive" if canary else "not applicable"
        with self._client(switch, row) as client:
            self._await_phase(row, before, client)
            if row.phase == "ready" and row.fault in CLIENT:
                trial = look(self.host).on_trial == [UNITS[switch.new]]
                result.problems += [] if trial else ["the new unit is not on trial"]
            struck = time.monotonic()
            inject.AT_ONCE.get(row.fault, inject.nothing)(self.host, client)
            boot = 0 if row.canary else ceil(time.monotonic() - struck)
            hold.let_go(self.host, row)
            result.bound = client.bound() + boot
            self._await_end(before, result.bound)
            seen = look(self.host, canary)
            result.seconds = round(time.monotonic() - min(struck, self.stopped), 1)
        result.end = judge.end_of(seen, switch)
        result.problems += judge.problems(row, switch, before, self._settled(seen, canary))
        if result.seconds > result.bound:
            result.problems.append(f"{result.seconds} s, later than {result.bound} s")
        if row.answered and (client.process.returncode == 0) != (row.expected == "new"):
            result.problems.append(f"it exits {client.process.returncode}: {client.said()}")
        self._again(result, switch)
        return result

    # What a row begins with.

    def _begin(self, row: Row) -> tuple[Sight, Switch]:
        """The host before, with one model that serves; and what the row changes."""
        seen, self.stopped = look(self.host), float("inf")
        if seen.model not in MODELS.values():
            self._serve(SGLANG)  # a row before this one broke off
            seen = look(self.host)
        self.rows += 1
        old, new = (SGLANG, VLLM) if seen.model == MODELS[SGLANG] else (VLLM, SGLANG)
        switch = Switch(old, new, f"row-{self.rows}")
        self._declare(new, switch.mark)
        self._behave({MODELS[new]: inject.misbehaviour(row)})
        if row.fault == "disk full":
            disk.make_small(self.host)
        hold.hold(self.host, row.phase)
        return seen, switch

    def _declare(self, name: str, mark: str) -> None:
        """Writes a deployment, with a mark that goes into its unit and its environment."""
        path = self.stack.folder / "deployments" / f"{name}.yaml"
        value = yaml.safe_load(path.read_text())
        value["timeouts"] = {limit: seconds // SCALE for limit, seconds in LIMITS.items()}
        value["env"] = {**value.get("env", {}), "ROW": mark}
        value["secrets"] = ["ROW_SECRET"]
        path.write_text(yaml.safe_dump(value))
        self.stack.configure(secrets={"ROW_SECRET": mark})

    def _behave(self, models: dict[str, dict[str, object]]) -> None:
        here = {name: seconds / SCALE for name, seconds in ENGINE.items()}
        self.host.write("/etc/practice/engine.json", json.dumps({**here, "models": models}))

    def _serve(self, deployment: str) -> None:
        self.stack.configure(active=deployment, hosts={"box": self.settings})
        self.stack.up()

    @contextmanager
    def _client(self, switch: Switch, row: Row) -> Iterator[Client]:
        """`pulumi up`; at the end it is gone, and the cause of all trouble is mended."""
        self.stack.configure(active=switch.new)
        client = Client(self.stack)
        try:
            yield client
        finally:
            if row.fault == "network silent":
                client.kill()  # it may wait for ever
                inject.speak(self.host)
            disk.make_usual(self.host)
            hold.release_all(self.host)
            self._behave({})
            client.end()

    # Until it is over.

    def _record(self, before: Sight) -> dict[str, Any]:
        """The record of this row's transaction; empty before there is one."""
        state = hold.newest_state(self.host)
        if not state or state["id"] == before.state.get("id"):
            return {}
        if "release" in state["begun"]:
            self.stopped = min(self.stopped, time.monotonic())
        return state

    def _await_phase(self, row: Row, before: Sight, client: Client) -> None:
        late = row.fault == REBOOT_IN_ROLL_BACK or row.phase == "roll-back"
        phase = "restore" if late else row.phase

        def there() -> bool:
            begun = self._record(before).get("begun", ())
            return phase in begun and hold.is_held(self.host, row.phase)

        inject.wait(there, 120, f"the transaction comes to {phase}", client.said)

    def _await_end(self, before: Sight, seconds: int) -> None:
        """Waits for the outcome, whoever brings it about."""
        pattern = ["cutover-*", "--state=active,activating,deactivating", "--no-legend", "--plain"]

        def ended() -> bool:
            over = self._record(before).get("outcome")
            busy = self.host.exec(["systemctl", "list-units", *pattern], check=False).stdout
            return bool(over) and not busy.strip()

        wait_for(ended, Deadline(seconds + SLACK_SECONDS), 0.1)

    def _settled(self, seen: Sight, canary: int) -> Sight:
        """The same a moment later: systemd forgets a unit not before its process is gone."""
        wait_for(lambda: not look(self.host).left, Deadline(15), 0.2)
        return look(self.host, canary) if seen.left else seen

    def _again(self, result: Result, switch: Switch) -> None:
        """One more `up`, with the cause mended, converges on the new model."""
        run = up(self.stack)
        if run.code or not judge.converged(look(self.host), switch):
            result.problems.append(
                f"the second up does not converge: {run.text.partition('Diagnostics:')[2][:1500]}"
            )
