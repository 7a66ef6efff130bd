"""Asks a real local server: healthy, wrong, silent, dying, or no model server at all."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from cutover_agent import probe
from cutover_agent.burst import warning
from cutover_agent.order import Probe
from cutover_agent.probe import (
    Completion,
    WrongServer,
    model_names,
    read_completion,
    ready,
    smoke,
)

HTML = "<html><body>It works!</body></html>"
MODELS = {"object": "list", "data": [{"id": "small"}, {"id": "small-alias"}]}


def completion(tokens: int = 12, **message: Any) -> dict[str, Any]:
    return {
        "choices": [{"message": {"role": "assistant", **message}, "finish_reason": "stop"}],
        "usage": {"completion_tokens": tokens},
    }


class Server(ThreadingHTTPServer):
    """Answers each path with a status and a body, and remembers what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[str, tuple[int, Any]] = {
            "/health": (200, ""),
            "/v1/models": (200, MODELS),
            "/v1/chat/completions": (200, completion(content="Paris")),
        }
        self.asked: list[tuple[str, str | None, Any]] = []
        self.cut = 0
        """Bytes that are promised and never sent."""
        self.drip = 0.0
        """Seconds between two bytes."""

    @property
    def probe(self) -> Probe:
        return Probe(f"http://127.0.0.1:{self.server_port}", "small", expect="paris")


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        key = self.headers.get("Authorization")
        self.server.asked.append((self.path, key, json.loads(body) if body else None))
        code, value = self.server.answers.get(self.path, (404, "not found"))
        data = (value if isinstance(value, str) else json.dumps(value)).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(data) + self.server.cut))
        self.end_headers()
        try:
            for byte in [bytes([b]) for b in data] if self.server.drip else [data]:
                time.sleep(self.server.drip)
                self.wfile.write(byte)
        except OSError:
            pass

    do_POST = do_GET

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as started:
        thread = Thread(target=started.serve_forever, args=(0.02,))
        thread.start()
        yield started
        started.shutdown()
        thread.join()


def test_a_healthy_server_of_the_right_model_is_ready(server: Server) -> None:
    assert ready(server.probe, None)
    assert [path for path, _, _ in server.asked] == ["/health", "/v1/models"]


def test_an_alias_counts_and_the_key_travels(server: Server) -> None:
    assert ready(Probe(server.probe.url, "small-alias"), "sk-1")
    assert {key for _, key, _ in server.asked} == {"Bearer sk-1"}


@pytest.mark.parametrize("code", [500, 502, 503, 204])
def test_a_server_that_is_not_healthy_yet_is_waited_for(server: Server, code: int) -> None:
    server.answers["/health"] = (code, "")
    assert not ready(server.probe, None)


def test_health_alone_is_not_ready(server: Server) -> None:
    server.answers["/v1/models"] = (503, "loading")
    assert not ready(server.probe, None)


@pytest.mark.parametrize("path", ["/health", "/v1/models"])
@pytest.mark.parametrize("code", [401, 403, 404])
def test_what_waiting_does_not_mend_is_told_at_once(server: Server, path: str, code: int) -> None:
    server.answers[path] = (code, "no")
    with pytest.raises(WrongServer, match=str(code)):
        ready(server.probe, "wrong")


@pytest.mark.parametrize(
    "body", [{"data": [{"id": "old-model"}]}, {"data": []}, HTML, {"data": "x"}, [], {"data": [1]}]
)
def test_another_model_or_no_model_server_is_told_at_once(server: Server, body: Any) -> None:
    server.answers["/v1/models"] = (200, body)
    with pytest.raises(WrongServer, match="not small"):
        ready(server.probe, None)


def test_the_model_that_serves_instead_is_named(server: Server) -> None:
    server.answers["/v1/models"] = (200, {"data": [{"id": "old-model"}]})
    with pytest.raises(WrongServer, match="serves old-model, not small"):
        ready(server.probe, None)


def test_nobody_there_is_not_ready() -> None:
    with Server() as closed:
        address = closed.probe
    assert not ready(address, None)


@pytest.mark.parametrize("code", [200, 503])
def test_a_server_that_dies_in_the_middle_of_its_answer_is_not_ready(
    server: Server, code: int
) -> None:
    server.answers["/health"] = (code, "half")
    server.cut = 100
    assert not ready(server.probe, None)


@pytest.mark.parametrize("value", ["http://127.0.0.1:9", "nonsense:://["])
def test_proxies_of_the_environment_are_not_used(server: Server, value: str) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(Path(probe.__file__).parents[1])!r})\n"
        "from cutover_agent import probe\n"
        f"print(probe.ready(probe.Probe({server.probe.url!r}, 'small'), None))"
    )
    names = ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=dict.fromkeys(names, value),
        capture_output=True,
        text=True,
    )
    assert (done.stdout.strip(), done.stderr) == ("True", "")


def test_the_smoke_request_is_a_chat_with_that_model(server: Server) -> None:
    answer = smoke(server.probe, "sk-1", 5)
    assert (answer.text, answer.tokens) == ("Paris", 12)
    path, key, question = server.asked[-1]
    assert (path, key) == ("/v1/chat/completions", "Bearer sk-1")
    assert question["model"] == "small"
    assert question["max_tokens"] == server.probe.max_tokens
    assert answer.tokens_per_second == round(12 / answer.seconds, 1)


@pytest.mark.parametrize(
    ("code", "body", "says"),
    [
        (200, HTML, "no chat completion: <html>"),
        (200, {"choices": [], "usage": {"completion_tokens": 1}}, "no chat completion"),
        (200, completion(content=None), "holds no text"),
        (200, completion(content="", reasoning_content=None), "holds no text"),
        (200, completion(content="Rome"), "'Rome' does not hold 'paris'"),
        (404, "no such model", "404: no such model"),
        (500, "engine dead", "500: engine dead"),
    ],
)
def test_an_answer_that_proves_nothing_is_told_with_its_first_bytes(
    server: Server, code: int, body: Any, says: str
) -> None:
    server.answers["/v1/chat/completions"] = (code, body)
    with pytest.raises(WrongServer, match=says):
        smoke(server.probe, None, 5)


def test_a_frozen_engine_is_found_by_the_time_limit(server: Server) -> None:
    server.drip = 3
    with pytest.raises(WrongServer, match="no answer"):
        smoke(server.probe, None, 0.3)


def test_a_first_answer_may_take_as_long_as_the_smoke_limit_says(server: Server) -> None:
    """F85: health is green long before."""
    server.drip = 0.02
    assert smoke(server.probe, None, 60).text == "Paris"


def test_an_answer_that_drips_does_not_stretch_the_time_limit(server: Server) -> None:
    server.answers["/v1/chat/completions"] = (200, " " * 40)
    server.drip = 0.05
    started = time.monotonic()
    with pytest.raises(WrongServer):
        smoke(server.probe, None, 0.3)
    assert time.monotonic() - started < 1.2


def test_an_engine_that_ends_at_the_request_is_not_called_late() -> None:
    with Server() as closed:
        address = closed.probe
    with pytest.raises(WrongServer) as told:
        smoke(address, None, 120)
    assert "within 120 s" not in str(told.value)


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
@pytest.mark.parametrize("content", [None, ""])
@pytest.mark.parametrize("finish", ["length", "stop"])
def test_thoughts_without_an_answer_count_as_text(
    name: str, content: str | None, finish: str
) -> None:
    message: dict[str, Any] = {"content": content, name: "The user asks"}
    body = completion(**message)
    body["choices"][0]["finish_reason"] = finish
    read = read_completion(json.dumps(body))
    assert read == Completion("The user asks", 12, still_thinking=finish == "length")


def test_a_model_that_still_thinks_when_its_tokens_end_is_alive_and_the_limit_is_named(
    server: Server,
) -> None:
    """F89: what the answer would have held, nobody knows."""
    body = completion(content=None, reasoning="The user asks")
    server.answers["/v1/chat/completions"] = (200, body)
    with pytest.raises(WrongServer, match="does not hold 'paris'"):
        smoke(server.probe, None, 5)
    body["choices"][0]["finish_reason"] = "length"
    answer = smoke(server.probe, None, 5)
    assert answer.still_thinking
    assert warning(server.probe, answer) == (
        "the model still thought when its 64 tokens were used up, so that there is no answer to "
        "look at: set a larger smoke.max_tokens"
    )


@pytest.mark.parametrize(
    "body",
    [
        {"choices": [{"message": None}], "usage": {"completion_tokens": 1}},
        {"choices": [{"message": "Paris"}], "usage": {"completion_tokens": 1}},
        {"choices": [{"text": "Paris"}], "usage": {"completion_tokens": 1}},
        {"choices": None},
        {"error": {"message": "boom"}},
        [],
        None,
        3,
    ],
)
def test_what_is_no_completion_is_told_in_a_sentence(body: Any) -> None:
    with pytest.raises(WrongServer, match=r"completion|text"):
        read_completion(json.dumps(body))


def test_no_list_of_models_has_no_names() -> None:
    assert model_names("") == model_names("null") == model_names("[]") == []
    assert probe.SHORT_SECONDS < 10
