"""Starts the plugin: prints its port, serves until Pulumi ends it or is gone."""

from __future__ import annotations

import gc

gc.disable()  # until everything is imported: every preview waits for that

import asyncio  # noqa: E402
import sys  # noqa: E402

import grpc  # noqa: E402

from .engine import Engine  # noqa: E402
from .provider import Provider  # noqa: E402
from .wire import provider_pb2_grpc  # noqa: E402

gc.enable()

_UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


async def main() -> None:
    """Serves one engine, whose address is the last argument."""
    addresses = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    engine = Engine(addresses[-1]) if addresses else None
    provider = Provider(engine)
    server = grpc.aio.server(options=_UNLIMITED)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(provider, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)
    if engine is None:
        await server.wait_for_termination()
        return
    await engine.gone()
    await provider.finish()


asyncio.run(main())
