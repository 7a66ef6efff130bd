"""The side of Pulumi that shows messages."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import grpc

from .wire import engine_pb2, engine_pb2_grpc

_SEVERITIES = {
    "status": engine_pb2.INFO,
    "info": engine_pb2.INFO,
    "warning": engine_pb2.WARNING,
    "error": engine_pb2.ERROR,
}


class Engine:
    """Takes messages, in order, without making the sender wait."""

    def __init__(self, address: str) -> None:
        self._channel = grpc.aio.insecure_channel(address)
        self._queue: asyncio.Queue[engine_pb2.LogRequest] = asyncio.Queue()
        self._sender = asyncio.create_task(self._send())

    def log(self, level: str, text: str, urn: str = "") -> None:
        """Shows a text; a "status" stays only until the resource's next one."""
        self._queue.put_nowait(
            engine_pb2.LogRequest(
                severity=_SEVERITIES[level], message=text, urn=urn, ephemeral=level == "status"
            )
        )

    async def flush(self) -> None:
        """Waits until the engine has every message."""
        await self._queue.join()

    async def gone(self) -> None:
        """Waits until the engine, having been there, is there no more."""
        seen, state = False, self._channel.get_state(try_to_connect=True)
        while not seen or state == grpc.ChannelConnectivity.READY:
            seen = seen or state == grpc.ChannelConnectivity.READY
            await self._channel.wait_for_state_change(state)
            state = self._channel.get_state()

    async def _send(self) -> None:
        stub: Any = engine_pb2_grpc.EngineStub(self._channel)
        while True:
            message = await self._queue.get()
            # The real plugin, too, runs on when its messages find nobody.
            with contextlib.suppress(grpc.aio.AioRpcError):
                await stub.Log(message)
            self._queue.task_done()
