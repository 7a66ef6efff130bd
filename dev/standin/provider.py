"""Pulumi's provider protocol for `command:remote:Command`, and for nothing else."""

from __future__ import annotations

import asyncio
import importlib
import secrets
from typing import Any, NoReturn

import grpc
from google.protobuf import empty_pb2

from .changes import changes, previewed, top
from .engine import Engine
from .errors import CommandError
from .inputs import checked
from .wire import Properties, plugin_pb2, provider_pb2, provider_pb2_grpc, read, revealed, write

VERSION = "1.2.1"
TYPE = "command:remote:Command"
ANNOUNCEMENT = (
    f"this is cutover's stand-in for the pulumi-command {VERSION} plugin, "
    "for the sandbox stack and tests only"
)


class Provider(provider_pb2_grpc.ResourceProviderServicer):
    """Answers the engine. Property values stay as they came; only a command sees them in plain."""

    def __init__(self, engine: Engine | None) -> None:
        self._engine = engine
        self._cancelled = asyncio.Event()
        self._announced = False
        self._running: set[asyncio.Task[Any]] = set()

    async def Handshake(self, request: Any, context: Any) -> NoReturn:
        await _unimplemented(context, "Handshake, as in the real plugin")

    async def Invoke(self, request: Any, context: Any) -> NoReturn:
        await _unimplemented(context, request.tok)

    async def GetPluginInfo(self, request: Any, context: Any) -> Any:
        return plugin_pb2.PluginInfo(version=VERSION)

    async def Attach(self, request: Any, context: Any) -> Any:
        self._engine = Engine(request.address)
        return empty_pb2.Empty()

    async def CheckConfig(self, request: Any, context: Any) -> Any:
        return provider_pb2.CheckResponse(inputs=request.news)

    async def DiffConfig(self, request: Any, context: Any) -> Any:
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)

    async def Configure(self, request: Any, context: Any) -> Any:
        if self._engine is not None and not self._announced:
            self._announced = True
            self._engine.log("info", ANNOUNCEMENT)
            await self._flush()
        return provider_pb2.ConfigureResponse(acceptSecrets=True, supportsPreview=True)

    async def Cancel(self, request: Any, context: Any) -> Any:
        self._cancelled.set()
        return empty_pb2.Empty()

    async def Check(self, request: Any, context: Any) -> Any:
        await _only_remote_commands(request.urn, context)
        inputs, failures = checked(read(request.news))
        return provider_pb2.CheckResponse(
            inputs=write(inputs),
            failures=[
                provider_pb2.CheckFailure(property=field, reason=reason)
                for field, reason in failures
            ],
        )

    async def Diff(self, request: Any, context: Any) -> Any:
        differences = changes(read(request.old_inputs), read(request.news))
        response = provider_pb2.DiffResponse
        kinds = provider_pb2.PropertyDiff.Kind
        return response(
            changes=response.DIFF_SOME if differences else response.DIFF_NONE,
            diffs=sorted({top(path) for path in differences}),
            replaces=[path for path, kind in differences.items() if kind.endswith("_REPLACE")],
            detailedDiff={
                path: provider_pb2.PropertyDiff(kind=kinds.Value(kind))
                for path, kind in differences.items()
            },
            hasDetailedDiff=True,
        )

    async def Create(self, request: Any, context: Any) -> Any:
        await _only_remote_commands(request.urn, context)
        inputs = read(request.properties)
        name = request.urn.split("::", 3)[3]
        if request.preview:
            outputs = previewed(inputs, None)
        else:
            outputs = {**inputs, "stdout": "", "stderr": ""}
            outputs |= await self._run(inputs.get("create"), outputs, request.urn, context)
        return provider_pb2.CreateResponse(
            id=name + secrets.token_hex(4), properties=write(outputs)
        )

    async def Update(self, request: Any, context: Any) -> Any:
        inputs, before = read(request.news), read(request.olds)
        if request.preview:
            outputs = previewed(inputs, before)
        else:
            outputs = {**inputs, "stdout": before["stdout"], "stderr": before["stderr"]}
            command = inputs.get("update", inputs.get("create"))
            outputs |= await self._run(command, outputs, request.urn, context)
        return provider_pb2.UpdateResponse(properties=write(outputs))

    async def Delete(self, request: Any, context: Any) -> Any:
        state = read(request.properties)
        await self._run(state.get("delete"), state, request.urn, context)
        return empty_pb2.Empty()

    async def Read(self, request: Any, context: Any) -> Any:
        return provider_pb2.ReadResponse(
            id=request.id, properties=request.properties, inputs=request.inputs
        )

    async def _run(self, command: Any, state: Properties, urn: str, context: Any) -> Properties:
        """Runs a command, if there is one; the outputs that change."""
        if command is None:
            return {}
        # An `up` with nothing to do must not pay for importing the SSH library.
        ssh = await asyncio.to_thread(importlib.import_module, ".command", __package__)

        def log(level: str, text: str) -> None:
            # The real plugin, once cancelled, finishes its commands in silence.
            if self._engine is not None and not self._cancelled.is_set():
                self._engine.log(level, text, urn)

        task = asyncio.create_task(
            ssh.run(revealed(command), revealed(state), log, self._cancelled)
        )
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            # A command ends by itself, even if Pulumi was killed meanwhile.
            output = await asyncio.shield(task)
        except CommandError as error:
            await self._flush()
            await context.abort(grpc.StatusCode.UNKNOWN, str(error))
        await self._flush()
        return {"stdout": output.stdout, "stderr": output.stderr}

    async def finish(self) -> None:
        """Waits for the commands that run."""
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _flush(self) -> None:
        """So that the last lines of a command are shown before its end is."""
        if self._engine is not None:
            await self._engine.flush()


async def _only_remote_commands(urn: str, context: Any) -> None:
    kind = urn.split("::")[2].rsplit("$", 1)[-1]
    if kind != TYPE:
        await _unimplemented(context, kind)


async def _unimplemented(context: Any, what: str) -> NoReturn:
    await context.abort(
        grpc.StatusCode.UNIMPLEMENTED,
        f"the stand-in for pulumi-command has only {TYPE}, not {what}; "
        "install the real plugin for it",
    )
    raise AssertionError("abort raises")
