from __future__ import annotations

import asyncio
import socket
import time
from pathlib import Path

from sandbox.forwarder import CHUNK, SLOWED, copy, delay_of

DELAY = 0.3
CHUNKS = 40


def test_a_slow_line_is_late_but_not_narrow_and_keeps_the_order() -> None:
    sent = b"".join(bytes([number]) * CHUNK for number in range(CHUNKS))

    async def carry() -> tuple[float, bytes]:
        loop = asyncio.get_running_loop()
        client, source = socket.socketpair()
        target, server = socket.socketpair()
        for one in (client, source, target, server):
            one.setblocking(False)
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            group.create_task(copy(source, target, DELAY))
            group.create_task(loop.sock_sendall(client, sent))
            found = await loop.sock_recv(server, CHUNK)
            first = time.monotonic() - began
            while len(found) < len(sent):
                found += await loop.sock_recv(server, CHUNK)
            assert time.monotonic() - began < CHUNKS * DELAY / 2
            client.close()
            assert await loop.sock_recv(server, CHUNK) == b"", "the end is passed on"
        for one in (source, target, server):
            one.close()
        return first, found

    first, found = asyncio.run(carry())
    assert first >= DELAY
    assert found == sent


def test_only_ssh_is_slowed_down_and_only_where_a_delay_is_set(tmp_path: Path) -> None:
    leader = tmp_path / "leader"
    assert delay_of(leader, SLOWED) == 0.0
    (tmp_path / "delay").write_text("0.075")
    assert (delay_of(leader, SLOWED), delay_of(leader, 8000)) == (0.075, 0.0)
