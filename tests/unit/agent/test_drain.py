"""Requests in flight get time to end, as long as the server tells of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from cutover_agent import drain
from cutover_agent.clock import Deadline

VLLM = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a b"} %s
vllm:num_requests_running{engine="1",model_name="a b"} 1.0
vllm:num_requests_waiting{engine="0",model_name="a b"} 2.0
vllm:num_requests_waiting_by_reason{reason="capacity"} 70.0
"""


@pytest.mark.parametrize(
    ("metrics", "count"),
    [
        (VLLM % "3.0", 6),
        ('sglang:num_running_reqs{model_name="m"} 4.0\nsglang:num_queue_reqs 1.0\n', 5),
        ("vllm:num_requests_running 0.0\n", 0),
        ("vllm:num_requests_running 1e+02\n", 100),
        ("process_cpu_seconds_total 5.0\n", None),
        ("", None),
    ],
)
def test_what_runs_and_what_waits_counts_over_all_ranks(metrics: str, count: int | None) -> None:
    assert drain.in_flight(metrics) == count


class Engine(BaseHTTPRequestHandler):
    """Tells of one request less each time it is asked."""

    left = 0
    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(f"vllm:num_requests_running {float(Engine.left)}\n".encode())
        Engine.left = max(0, Engine.left - 1)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(drain, "POLL_SECONDS", 0.01)
    Engine.status = 200
    with HTTPServer(("127.0.0.1", 0), Engine) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(
    ("left", "seconds", "status", "says"),
    [
        (0, 60, 200, []),
        (3, 60, 200, ["3 requests in flight get up to 60 s", "they have ended"]),
        (5, 0, 200, []),
        (5, 60, 404, ["{url}/metrics does not tell of requests in flight: none is waited for"]),
    ],
)
def test_it_is_over_at_once_when_nothing_is_in_flight_any_more(
    url: str, left: int, seconds: int, status: int, says: list[str]
) -> None:
    Engine.left, Engine.status = left, status
    said: list[str] = []
    spent = Deadline(60)
    drain.drain(url, seconds, said.append)
    assert said == [line.format(url=url) for line in says]
    assert spent.spent < 30


def test_requests_without_end_hold_a_cutover_up_for_so_long_and_no_longer(url: str) -> None:
    Engine.left = 1_000_000
    said: list[str] = []
    spent = Deadline(60)
    drain.drain(url, 0.3, said.append)
    assert 0.3 <= spent.spent < 30
    assert "still in flight after that, and are cut off" in said[-1]


def test_where_nothing_answers_there_is_nothing_to_say() -> None:
    said: list[str] = []
    drain.drain("http://127.0.0.1:9", 60, said.append)
    assert said == []
