"""Runs the program against Pulumi's mocks and records the graph that it registers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pulumi
from google.protobuf import json_format
from pulumi.runtime.mocks import MockCallArgs, MockMonitor, MockResourceArgs, Mocks

SECRET = "4dabf18193072939515e22adb298388d"
"""Key by which the engine knows a secret value on the wire."""
PROVIDER = "pulumi:providers:command"


@dataclass
class Registered:
    """One resource as the engine would get it."""

    name: str
    type: str
    parent: str
    inputs: dict[str, Any]
    after: frozenset[str]
    """Names of the resources that it waits for."""
    delete_before_replace: bool
    hidden: tuple[str, ...]


@dataclass
class Recorder(MockMonitor):
    """Keeps every registration; anything that is not registered as expected is an error."""

    mocks: Mocks
    graph: dict[str, Registered] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__(self.mocks)

    def RegisterResource(self, request: Any) -> Any:
        if request.type != "pulumi:pulumi:Stack":
            self.graph[request.name] = Registered(
                name=request.name,
                type=request.type,
                parent=request.parent.rpartition("::")[2],
                inputs=json_format.MessageToDict(request.object),
                after=frozenset(urn.rpartition("::")[2] for urn in request.dependencies),
                delete_before_replace=request.deleteBeforeReplace,
                hidden=tuple(request.hideDiffs),
            )
        return super().RegisterResource(request)  # type: ignore[no-untyped-call]


class Commands(Mocks):
    """Answers for remote commands and components; throws on whatever else is asked."""

    def call(self, args: MockCallArgs) -> Any:
        raise AssertionError(f"nothing mocks the call {args.token}")

    def new_resource(self, args: MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        if args.typ.startswith("cutover:index:"):
            return None, {}
        if args.typ == PROVIDER:
            return args.name, {}
        if args.typ != "command:remote:Command":
            raise AssertionError(f"nothing mocks a {args.typ}")
        answer = {"receipt": f"{args.name}-receipt", "deployment": "d", "gate": {"line": "free"}}
        return args.name, {**args.inputs, "stdout": json.dumps(answer), "stderr": ""}


def record(config: dict[str, Any], monkeypatch: Any, root: Path) -> dict[str, Registered]:
    """The graph of the whole program for a stack config, by resource name."""
    monkeypatch.chdir(root)

    def program() -> Any:
        from components.program import program

        return program()

    return graph_of(program, config)


def graph_of(program: Callable[[], Any], config: dict[str, Any]) -> dict[str, Registered]:
    """What a program registers, by resource name."""
    asyncio.set_event_loop(asyncio.new_event_loop())
    recorder = Recorder(Commands())
    pulumi.runtime.set_mocks(recorder.mocks, "cutover", "test", False, monitor=recorder)
    encoded = {
        f"cutover:{key}": value if isinstance(value, str) else json.dumps(value)
        for key, value in config.items()
    }
    pulumi.runtime.set_all_config(encoded)
    pulumi.runtime.test(program)()  # type: ignore[no-untyped-call]
    return recorder.graph


def plain_texts(value: Any) -> Iterator[str]:
    """Every text in a resource's inputs that is not inside a secret."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        if SECRET not in value:
            for item in value.values():
                yield from plain_texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from plain_texts(item)
