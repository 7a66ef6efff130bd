"""Speaks to a plugin as Pulumi's engine does, and keeps what the plugin says to the engine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, provider_pb2, provider_pb2_grpc

from sandbox import Host
from standin.wire import UNKNOWN, Properties, read, secret, write

__all__ = ["UNKNOWN", "Failed", "Message", "Plugin", "connection", "running", "secret"]

_UNLIMITED = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_metadata_size", 16 * 1024 * 1024),
    ("grpc.absolute_max_metadata_size", 16 * 1024 * 1024),
]
_KINDS = provider_pb2.PropertyDiff.Kind


class Message(NamedTuple):
    """What a plugin gave the engine to show; a passing one stays only until the next."""

    severity: str
    text: str
    passing: bool


class Failed(Exception):
    """A call that the plugin answered with an error."""


class _Engine(engine_pb2_grpc.EngineServicer):
    def __init__(self) -> None:
        self.messages: dict[str, list[Message]] = {}

    def Log(self, request: Any, context: Any) -> Any:
        severity = engine_pb2.LogSeverity.Name(request.severity)
        message = Message(severity, request.message, request.ephemeral)
        self.messages.setdefault(request.urn, []).append(message)
        return empty_pb2.Empty()


class Plugin:
    """A plugin process; each call is about one resource, known by its name."""

    def __init__(self, port: int, engine: _Engine) -> None:
        channel = grpc.insecure_channel(f"127.0.0.1:{port}", _UNLIMITED)
        self.stub = provider_pb2_grpc.ResourceProviderStub(channel)
        self._engine = engine
        self.configure()

    def configure(self) -> None:
        """Begins, as the engine does once or more for a plugin."""
        self.stub.Configure(
            provider_pb2.ConfigureRequest(
                acceptSecrets=True,
                acceptResources=True,
                sends_old_inputs=True,
                sends_old_inputs_to_delete=True,
            )
        )

    def messages(self, name: str) -> list[Message]:
        """What the plugin said about a resource."""
        return self._engine.messages.get(_urn(name), [])

    def check(
        self, news: Properties, kind: str = "command:remote:Command"
    ) -> tuple[Properties, list[tuple[str, str]]]:
        """The inputs as the plugin completes them, and what it finds wrong: (field, reason)."""
        request = provider_pb2.CheckRequest(urn=_urn("one", kind), news=write(news))
        answer = self._call("Check", request)
        return read(answer.inputs), [(each.property, each.reason) for each in answer.failures]

    def diff(self, old: Properties, new: Properties) -> dict[str, str]:
        """The kind of change of each path, from inputs to inputs."""
        request = provider_pb2.DiffRequest(
            id="one", urn=_urn("one"), olds=write(old), old_inputs=write(old), news=write(new)
        )
        answer = self._call("Diff", request)
        assert (answer.changes == provider_pb2.DiffResponse.DIFF_SOME) == bool(answer.detailedDiff)
        return {path: _KINDS.Name(each.kind) for path, each in answer.detailedDiff.items()}

    def create(self, inputs: Properties, name: str = "one", preview: bool = False) -> Properties:
        """The outputs of a new resource."""
        request = provider_pb2.CreateRequest(
            urn=_urn(name), properties=write(inputs), preview=preview
        )
        return read(self._call("Create", request).properties)

    def update(
        self, state: Properties, inputs: Properties, name: str = "one", preview: bool = False
    ) -> Properties:
        """The outputs of a resource whose inputs change."""
        request = provider_pb2.UpdateRequest(
            id=name, urn=_urn(name), olds=write(state), news=write(inputs), preview=preview
        )
        return read(self._call("Update", request).properties)

    def delete(self, state: Properties, name: str = "one") -> None:
        """Ends a resource."""
        request = provider_pb2.DeleteRequest(id=name, urn=_urn(name), properties=write(state))
        self._call("Delete", request)

    def cancel(self) -> None:
        """Says what an interrupted `pulumi up` says."""
        self._call("Cancel", empty_pb2.Empty())

    def _call(self, method: str, request: Any) -> Any:
        try:
            return getattr(self.stub, method)(request, timeout=30)
        except grpc.RpcError as error:
            raise Failed(error.details()) from None


@contextmanager
def running(executable: Path, **environment: str) -> Iterator[Plugin]:
    """Starts a plugin beside an engine that listens, and ends it."""
    recorder = _Engine()
    engine = grpc.server(ThreadPoolExecutor(4))
    engine_pb2_grpc.add_EngineServicer_to_server(recorder, engine)
    address = f"127.0.0.1:{engine.add_insecure_port('127.0.0.1:0')}"
    engine.start()
    inherited = {key: value for key, value in os.environ.items() if key != "SSH_AUTH_SOCK"}
    process = subprocess.Popen(
        [executable, address], stdout=subprocess.PIPE, text=True, env=inherited | environment
    )
    try:
        assert process.stdout is not None
        yield Plugin(int(process.stdout.readline()), recorder)
    finally:
        process.terminate()
        process.wait()
        engine.stop(None).wait()


def connection(practice: Host, **changes: Any) -> Properties:
    """What a resource needs to reach a practice host, as `check` completes it."""
    return {
        "host": practice.address,
        "port": practice.port,
        "user": "root",
        "privateKey": practice.key_path.read_text(),
        "dialErrorLimit": 0,
        "perDialTimeout": 15,
        **changes,
    }


def _urn(name: str, kind: str = "command:remote:Command") -> str:
    return f"urn:pulumi:test::cutover::{kind}::{name}" if name else ""
