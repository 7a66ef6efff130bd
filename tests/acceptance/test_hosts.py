"""Two hosts of one stack: each its own model, one after the other or side by side, by a jump host.

The tests share the hosts; each begins with `one` and `two` serving, and leaves them so.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sandbox import Host, forwarder, start
from tests.acceptance.stack import (
    MODELS,
    SGLANG,
    UNITS,
    VLLM,
    Stack,
    logins,
    serves,
    settings,
    unit,
)

pytestmark = pytest.mark.xdist_group("hosts")
INSIDE = ("127.0.0.9", 2222)
"""Where the jump host reaches `two`; from outside nobody does."""


class Pair:
    """Two hosts, and the stack that they belong to."""

    def __init__(self, one: Host, two: Host, stack: Stack) -> None:
        self.one, self.two, self.stack = one, two, stack

    def configure(self, one: str, two: str, **changes: Any) -> None:
        """`one` serves what the stack does, `two` a deployment of its own."""
        hosts = {"one": settings(self.one), "two": settings(self.two, active=two)}
        self.stack.configure(active=one, hosts=hosts, **changes)

    @property
    def serves(self) -> list[str | None]:
        return [serves(self.one), serves(self.two)]

    @property
    def pids(self) -> list[str]:
        """Of what serves on each."""
        units = {MODELS[name]: UNITS[name] for name in UNITS}
        hosts = (self.one, self.two)
        return [unit(host, units[serves(host) or ""], "MainPID") for host in hosts]


def broken(host: Host, deployment: str) -> None:
    """That model does not load on that host from now on."""
    how = {"models": {MODELS[deployment]: {"crash": "loading"}}}
    host.write("/etc/practice/engine.json", json.dumps(how))


def mended(host: Host) -> None:
    host.write("/etc/practice/engine.json", "{}")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """`one` serves SGLANG and `two` VLLM."""
    state = tmp_path_factory.mktemp("hosts")
    with start("one", state=state) as one, start("two", state=state) as two:
        made = Pair(one, two, Stack(tmp_path_factory.mktemp("stack")))
        made.configure(SGLANG, VLLM)
        made.stack.up()
        yield made


def test_each_host_may_serve_a_deployment_of_its_own(pair: Pair) -> None:
    assert pair.serves == [MODELS[SGLANG], MODELS[VLLM]]
    shown = pair.stack.outputs()
    assert [shown[name]["serves"] for name in ("one", "two")] == [SGLANG, VLLM]


def test_a_host_that_fails_stops_those_behind_it_and_nothing_restarts_what_is_right(
    pair: Pair,
) -> None:
    before = pair.pids
    broken(pair.one, VLLM)
    pair.configure(VLLM, SGLANG)
    pair.stack.up(fails=True)
    assert pair.serves == [MODELS[SGLANG], MODELS[VLLM]]
    assert pair.pids[1] == before[1], "nothing was begun behind the failure"
    tried = pair.pids[0]
    assert tried != before[0]
    pair.stack.up(fails=True)
    assert pair.pids[0] != tried, "the same config tries again"
    after = pair.pids
    pair.configure(SGLANG, VLLM)
    pair.stack.up()
    assert (pair.serves, pair.pids) == ([MODELS[SGLANG], MODELS[VLLM]], after)
    mended(pair.one)


def test_a_failure_on_the_last_host_and_then_the_same_and_the_reverted_config(pair: Pair) -> None:
    broken(pair.two, SGLANG)
    pair.configure(VLLM, SGLANG)
    pair.stack.up(fails=True)
    assert pair.serves == [MODELS[VLLM]] * 2
    switched = pair.pids
    pair.stack.up(fails=True)
    assert pair.pids[0] == switched[0] and pair.pids[1] != switched[1]
    after = pair.pids[1]
    pair.configure(SGLANG, VLLM)
    pair.stack.up()
    assert (pair.serves, pair.pids[1]) == ([MODELS[SGLANG], MODELS[VLLM]], after)
    mended(pair.two)


def test_side_by_side_a_failure_leaves_the_others_alone_where_up_continues_on_errors(
    pair: Pair,
) -> None:
    for host in (pair.one, pair.two):
        host.write("/etc/practice/engine.json", json.dumps({"load_seconds": 6}))
    pair.configure(VLLM, SGLANG, parallel=True)
    pair.stack.up()
    assert pair.serves == [MODELS[VLLM], MODELS[SGLANG]]
    (began, ended), (other_began, other_ended) = (span(pair.one), span(pair.two))
    assert began < other_ended and other_began < ended, "both load at once"
    broken(pair.one, SGLANG)
    mended(pair.two)
    pair.configure(SGLANG, VLLM)
    pair.stack.up("--continue-on-error", fails=True)
    assert pair.serves == [MODELS[VLLM]] * 2
    mended(pair.one)
    pair.configure(SGLANG, VLLM, parallel=False)
    pair.stack.up()
    assert pair.serves == [MODELS[SGLANG], MODELS[VLLM]]


def span(host: Host) -> tuple[float, float]:
    """When the last cutover of a host began and ended."""
    shell = "cat $(ls -td /var/lib/cutover/transactions/* | head -n 1)/events.jsonl"
    events = host.exec(["sh", "-c", shell]).stdout.splitlines()
    times = [float(json.loads(event)["time"]) for event in events]
    return times[0], times[-1]


@contextmanager
def reached_from(jump: Host, host: Host) -> Iterator[None]:
    """Makes a host's sshd answer inside the network of the jump host."""
    with forwarder.socket_inside(jump.folder / "leader") as door:
        door.bind(INSIDE)
        door.listen()
        words = [sys.executable, "-B", forwarder.__file__, str(host.folder / "leader")]
        fd = door.fileno()
        carrier = subprocess.Popen([*words, f"{fd}:22"], pass_fds=[fd])
        try:
            yield
        finally:
            carrier.terminate()
            carrier.wait()


def test_a_host_behind_a_jump_host_is_reached_by_commands_and_by_facts(
    pair: Pair, tmp_path: Path
) -> None:
    jump, before = pair.one, pair.pids
    stack = Stack(tmp_path)

    def configure(**changes: Any) -> None:
        way = {**settings(jump, **changes), "user": "operator"}
        del way["gpus"]
        host = settings(pair.two, address=INSIDE[0], port=INSIDE[1], proxy=way)
        stack.configure(active=VLLM, hosts={"two": host})

    with reached_from(jump, pair.two):
        configure()
        passed = logins(jump)
        stack.up()
        assert logins(jump) > passed
        assert (pair.serves[1], pair.pids) == (MODELS[VLLM], before)
        passed = logins(jump)
        assert f"two: {VLLM} serves (" in stack.preview("--expect-no-changes").text
        assert logins(jump) == passed + 1
        configure(host_key=None)
        pin = f"then add below `proxy` `host_key: {' '.join(jump.host_key.split()[:2])}`"
        shown = stack.preview().text
        assert pin in shown and f"no key is pinned for {jump.address}" in shown
        configure(host_key=pair.two.host_key)
        shown = stack.preview(fails=True).text
        assert f"hosts.two.proxy.host_key: {jump.address} shows another key" in shown
        configure(port=1)
        assert "two: the host cannot be asked: the jump host: " in stack.preview().text


def test_a_host_that_is_taken_out_alive_is_left_clean_while_the_other_serves_on(
    pair: Pair,
) -> None:
    """The last one: nothing of ours is on `two` behind it."""
    before = pair.pids[0]
    pair.stack.configure(active=SGLANG, hosts={"one": settings(pair.one)})
    pair.stack.up()
    assert (pair.serves, unit(pair.one, UNITS[SGLANG], "MainPID")) == (
        [MODELS[SGLANG], None],
        before,
    )
    left = ["sh", "-c", "ls -d /var/lib/cutover /usr/local/bin/cutover /etc/cutover "
            "/etc/systemd/system/*llm* /etc/systemd/system/*sglang*"]  # fmt: skip
    assert pair.two.exec(left, check=False).stdout == ""
