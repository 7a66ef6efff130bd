"""What a cutover would go back to, found from real servers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cutover_agent import previous, systemd
from cutover_agent.checks import Refused
from cutover_agent.clock import Deadline, wait_for
from cutover_agent.order import Order
from cutover_agent.policy import Decision
from cutover_agent.ports import urls_of
from cutover_agent.previous import find, way_back
from cutover_agent.processes import Process, read_process
from cutover_agent.release_plan import ReleasePlan, Tree, Verdict
from cutover_agent.store import Serving, Store
from cutover_agent.systemd import UnitState
from tests.unit.agent.samples import holder, order

SERVER = """
import http.server, json, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        known = self.headers.get("Authorization") in (None, "Bearer s3cret")
        body = json.dumps({"data": [{"id": sys.argv[1]}]} if self.path == "/v1/models" else {})
        self.send_response(200 if known else 401)
        self.end_headers()
        self.wfile.write(body.encode())
    def log_message(self, *_): pass
http.server.HTTPServer(("127.0.0.1", 0), Handler).serve_forever()
"""
FOREIGN = "vLLM@a.service"


class Servers:
    """Model servers that somebody started by hand."""

    def __init__(self) -> None:
        self.children: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, env: dict[str, str] | None = None) -> Tree:
        """Starts one and waits until it listens."""
        words = [sys.executable, "-c", SERVER, name]
        child = subprocess.Popen(words, env={"A": "1", "VLLM_API_KEY": "s3cret"} | (env or {}))
        self.children.append(child)
        assert wait_for(lambda: urls_of([child.pid]), Deadline(60))
        process = read_process(child.pid)
        assert process
        return Tree(process, (process,))

    def end(self) -> None:
        for child in self.children:
            child.kill()
            child.wait()


@pytest.fixture
def servers() -> Iterator[Servers]:
    made = Servers()
    yield made
    made.end()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path)
    made.prepare()
    return made


def texts(store: Store) -> list[str]:
    return [path.read_text() for path in (store.root / "texts").iterdir()]


def plan(*trees: Tree, gpus: tuple[int, ...] = (0, 1)) -> ReleasePlan:
    held = [Verdict(holder(t.root, 9000, *gpus), Decision("end", "")) for t in trees]
    return ReleasePlan(end=trees, verdicts=tuple(held))


def unit_of(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> ReleasePlan:
    """The same server, as the main process of a unit that somebody wrote."""
    inside = replace(tree.root, cgroup=f"/system.slice/{FOREIGN}")
    monkeypatch.setattr(previous, "read_processes", lambda: {inside.pid: inside})
    running = UnitState("active", "running", inside.pid, 0, "", "enabled", "success")
    monkeypatch.setattr(systemd, "state", lambda _: running)
    return replace(plan(Tree(inside, (inside,))), end=(), aside=(FOREIGN,))


def test_a_server_started_by_hand_is_kept_as_a_unit_only_once_it_is_staged(
    servers: Servers, store: Store
) -> None:
    tree = servers.start("mine")
    way = find(store, order(), plan(tree))
    assert f"pid {tree.root.pid} (" in way.sentence and "best effort" in way.sentence
    assert "s3cret" not in way.sentence
    assert texts(store) == [], "to look changes nothing"
    serving, sentence = way_back(store, order(), plan(tree))
    assert serving and sentence == way.sentence
    assert (serving.order.probe.model, serving.order.gpus) == ("mine", (0, 1))
    assert 'A="1"\n' in store.text(serving.env_digest)
    assert '"mine"' in store.text(serving.order.unit_digest)
    assert not serving.foreign


def test_a_server_without_a_readable_environment_is_refused_or_given_up(
    servers: Servers, store: Store
) -> None:
    tree = servers.start("mine")
    gone = Tree(replace(tree.root, argv=("VLLM::APIServer",)), tree.members)
    way = find(store, order(), plan(gone))
    assert way.refused and "its environment cannot be read: end it yourself, or set " in (
        way.sentence
    )
    with pytest.raises(Refused, match="`accept_no_rollback: true`"):
        way_back(store, order(), plan(gone))
    serving, sentence = way_back(store, order(accept_no_rollback=True), plan(gone))
    assert serving is None and "as accept_no_rollback allows" in sentence


def test_of_two_servers_neither_is_the_way_back(servers: Servers, store: Store) -> None:
    both = plan(servers.start("one"), servers.start("two"))
    with pytest.raises(Refused, match="more than one serves"):
        way_back(store, order(), both)


def test_a_unit_of_somebody_else_is_the_way_back_and_its_files_are_not_ours(
    servers: Servers, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged = unit_of(servers.start("theirs"), monkeypatch)
    serving, sentence = way_back(store, order(), staged)
    assert serving and serving.foreign
    assert sentence == (
        f"{FOREIGN}, a unit of somebody else, is the way back: it is started again as it is"
    )
    assert (serving.order.unit, serving.order.deployment) == (FOREIGN, "vllm-a.service")
    assert Order.from_json(serving.order.to_json()) == serving.order
    assert store.text(serving.env_digest).endswith('\nCUTOVER_API_KEY="s3cret"\n')
    store.set_before(serving)
    assert store.before() is None, "`cutover back` serves deployments"


def test_several_units_all_start_again_and_what_was_started_by_hand_is_asked(
    servers: Servers, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = servers.start("mine")
    staged = unit_of(servers.start("theirs"), monkeypatch)
    both = replace(staged, end=(mine,), verdicts=plan(mine).verdicts)
    serving, sentence = way_back(store, order(), both)
    assert serving and serving.order.probe.model == "mine"
    assert sentence.endswith(f" that it has now; {FOREIGN} is started again as it is")


def test_what_does_not_answer_is_no_way_back(store: Store) -> None:
    quiet = Process(1, 1, 0, "S", "init", ("/sbin/init",), "root", "/")
    serving, sentence = way_back(store, order(), plan(Tree(quiet, ())))
    assert (serving, sentence) == (None, "there is no way back: nothing serves here now")


def test_what_was_committed_is_the_way_back_while_it_runs_and_else_what_answers(
    servers: Servers, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.set_serving(Serving(order(deployment="old"), "e" * 64, "t", 1.0))
    running = UnitState("active", "running", 1, 0, "", "enabled", "success")
    monkeypatch.setattr(systemd, "state", lambda _: running)
    assert find(store, order(), ReleasePlan()).sentence == "old is the way back"
    monkeypatch.setattr(systemd, "state", lambda _: replace(running, active="failed"))
    said = find(store, order(), ReleasePlan()).sentence
    assert said == "old, which does not run, is the way back"
    assert "by hand" in find(store, order(), plan(servers.start("mine"))).sentence
