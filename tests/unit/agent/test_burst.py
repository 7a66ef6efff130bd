"""Smoke requests against a real HTTP server that counts how many it has at once."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from cutover_agent import burst, probe
from cutover_agent.order import Probe
from cutover_agent.probe import Answer, WrongServer


class Model(BaseHTTPRequestHandler):
    """Answers when as many requests as `together` are there, and wrongly where it is told to."""

    together = threading.Barrier(1)
    text = "Paris"
    served = 0

    def do_POST(self) -> None:
        Model.together.wait(timeout=10)
        Model.served += 1
        self.rfile.read(int(self.headers["Content-Length"]))
        message = {"content": Model.text}
        answer = {"choices": [{"message": message}], "usage": {"completion_tokens": 5}}
        self._send(json.dumps(answer))

    def do_GET(self) -> None:
        listed = {"data": [{"id": "m"}]}
        self._send(json.dumps(listed) if self.path in ("/v1/models", "/ok") else None)

    def _send(self, body: str | None) -> None:
        self.send_response(404 if body is None else 200)
        self.end_headers()
        self.wfile.write((body or "").encode())

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    Model.together, Model.text, Model.served = threading.Barrier(1), "Paris", 0
    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_requests_are_under_way_together_and_their_tokens_add_up(url: str) -> None:
    Model.together = threading.Barrier(4)  # breaks unless four are there at once
    answer = burst.ask(Probe(url, "m", requests=8, concurrency=4), None, 20)
    assert (answer.text, answer.tokens, Model.served) == ("Paris", 40, 8)


def test_one_wrong_answer_fails_all(url: str) -> None:
    Model.text = "Rome"
    with pytest.raises(WrongServer, match="does not hold 'Paris'"):
        burst.ask(Probe(url, "m", expect="Paris", requests=3), None, 20)


def test_readiness_is_asked_where_the_deployment_says(url: str) -> None:
    assert probe.ready(Probe(url, "m", health="/ok"), None)


@pytest.mark.parametrize(("least", "warned"), [(0.0, False), (600.0, True), (500.0, False)])
def test_too_slow_is_a_sentence_and_no_failure(least: float, warned: bool) -> None:
    told = burst.warning(Probe("u", "m", requests=60, concurrency=30,
                               min_tokens_per_second=least), Answer("", 500, 1.0))  # fmt: skip
    assert bool(told) == warned
    assert not warned or told.startswith("500.0 tokens/s (60 requests, 30 at once) are below 600")
