"""The OpenAI-like HTTP side of a practice engine."""

from __future__ import annotations

import json
import sys
import threading
import time
import uuid
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any

from practice_engine.answers import Answer, answer
from practice_engine.style import Style


@dataclass(frozen=True)
class Service:
    """What is served, to whom, and how."""

    style: Style
    behaviour: dict[str, Any]
    models: list[str]
    root: str
    context: int
    keys: list[str]
    reasons: bool
    host: str
    port: int


class Server(ThreadingHTTPServer):
    """Takes its port and starts to listen at different times, as the real ones do."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, service: Service) -> None:
        self.service = service
        self.running = 0
        self.generated = 0
        self.lock = threading.Lock()
        super().__init__((service.host, service.port), Handler, bind_and_activate=False)

    def take_port(self) -> None:
        """Bind, without looking up a name for the address; taken is fatal, as in the real ones."""
        try:
            TCPServer.server_bind(self)
        except OSError as error:
            self.service.style.log("APIServer", f"OSError: {error}", level="ERROR")
            sys.exit(1)

    def listen(self) -> None:
        """Let connections in."""
        self.server_activate()


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        """Health, models, metrics."""
        service, path = self.server.service, self.path.partition("?")[0]
        if not self._allowed(path):
            return
        if path in ("/health", "/ping", "/health_generate"):
            self._send(service.behaviour["health_status"], None)
        elif path == "/v1/models":
            self._send(200, {"object": "list", "data": [self._model(m) for m in service.models]})
        elif path == "/version":
            self._send(200, {"version": "0.0.0+practice"})
        elif path == "/metrics":
            running = "sglang:num_running_reqs" if service.style.name == "sglang" else ""
            name = running or "vllm:num_requests_running"
            self._send_bytes(200, "text/plain", f"{name} {float(self.server.running)}\n".encode())
        else:
            self._send(404, {"detail": "Not Found"})

    def do_POST(self) -> None:
        """Completions."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.partition("?")[0]
        if not self._allowed(path):
            return
        if path not in ("/v1/chat/completions", "/v1/completions"):
            self._send(404, {"detail": "Not Found"})
            return
        try:
            asked = json.loads(body)
        except ValueError:
            self._send(400, _error("The request is not JSON.", "BadRequestError", 400))
            return
        service = self.server.service
        model = asked.get("model", service.models[0])
        if service.style.name == "vllm" and model not in service.models:
            text = f"The model `{model}` does not exist."
            self._send(404, _error(text, "NotFoundError", 404))
            return
        with self.server.lock:
            self.server.running += 1
        try:
            self._complete(asked, model, chat=path.endswith("chat/completions"))
        finally:
            with self.server.lock:
                self.server.running -= 1

    def _complete(self, asked: dict[str, Any], model: str, chat: bool) -> None:
        service = self.server.service
        while service.behaviour["never_answers"]:
            time.sleep(3600)
        question = asked.get("prompt", "")
        if chat:
            question = " ".join(str(m.get("content")) for m in asked.get("messages", []))
        most = asked.get("max_completion_tokens") or asked.get("max_tokens")
        said = answer(str(question), most, chat and service.reasons, service.behaviour["answer"])
        if asked.get("stream"):
            self._stream(said, model, chat)
            return
        time.sleep(said.tokens * service.behaviour["token_seconds"])
        prompt = len(str(question).split()) + 7
        choice: dict[str, Any] = {"index": 0, "finish_reason": "length" if said.cut else "stop"}
        text = " ".join(said.content)
        if chat:
            message: dict[str, Any] = {
                "role": "assistant",
                "content": text or None,
                "tool_calls": [],
            }
            if service.reasons:
                message[service.style.reasoning] = " ".join(said.reasoning)
            choice["message"] = message
        else:
            choice["text"] = text
        usage = {"prompt_tokens": prompt, "completion_tokens": said.tokens}
        usage["total_tokens"] = prompt + said.tokens
        self._send(200, {**_reply("chat.completion", model), "choices": [choice], "usage": usage})

    def _stream(self, said: Answer, model: str, chat: bool) -> None:
        """Server-sent events, a token each."""
        service = self.server.service
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        key = "content" if chat else "text"
        parts = [(service.style.reasoning, f"{word} ") for word in said.reasoning]
        for name, word in [*parts, *((key, f"{word} ") for word in said.content)]:
            time.sleep(service.behaviour["token_seconds"])
            choice = {"index": 0, "delta": {name: word}} if chat else {"index": 0, name: word}
            event = {**_reply("chat.completion.chunk", model), "choices": [choice]}
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def _allowed(self, path: str) -> bool:
        service = self.server.service
        is_open = path in service.style.open_paths
        if service.style.name == "vllm":
            is_open = not path.startswith("/v1")
        given = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if not service.keys or is_open or given in service.keys:
            return True
        self._send(401, {"error": "Unauthorized"})
        return False

    def _model(self, name: str) -> dict[str, Any]:
        service = self.server.service
        return {
            "id": name,
            "object": "model",
            "created": int(time.time()),
            "owned_by": service.style.name,
            "root": service.root,
            "max_model_len": service.context,
        }

    def _send(self, status: int, value: object) -> None:
        self._send_bytes(
            status, "application/json", b"" if value is None else json.dumps(value).encode()
        )

    def _send_bytes(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code: object = "-", size: object = "-") -> None:
        """As uvicorn writes it."""
        host, port = self.client_address[:2]
        status = getattr(code, "value", code)
        line = f'INFO:     {host}:{port} - "{self.requestline}" {status}'
        prefix = self.server.service.style.prefix("APIServer")
        print(f"{prefix}{line}", file=sys.stderr, flush=True)


def _reply(kind: str, model: str) -> dict[str, Any]:
    name = f"chatcmpl-{uuid.uuid4().hex}"
    return {"id": name, "object": kind, "created": int(time.time()), "model": model}


def _error(text: str, kind: str, code: int) -> dict[str, Any]:
    return {"error": {"message": text, "type": kind, "param": None, "code": code}}
