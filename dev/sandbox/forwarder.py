"""Carries connections from a host's loopback address into the host's own network namespace.

    forwarder.py <file with the pid of the host's first process> <fd>:<port>...

Each fd is a listening socket that the caller has bound; <port> is the port inside. Connections to
port 22 are as slow as the file `delay` beside the first one says: seconds each way.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import socket
import struct
import sys
from pathlib import Path

CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)
HERE = os.open("/proc/self/ns/net", os.O_RDONLY)
CHUNK = 64 * 1024
SLOWED = 22


def enter(namespace: int) -> None:
    """Switch this process to a network namespace."""
    if LIBC.setns(namespace, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


def socket_inside(leader: Path) -> socket.socket:
    """A socket that belongs to the host's network, whichever boot of it is running."""
    namespace = os.open(f"/proc/{int(leader.read_text())}/ns/net", os.O_RDONLY)
    try:
        enter(namespace)
        return socket.socket()
    finally:
        enter(HERE)
        os.close(namespace)


async def copy(source: socket.socket, target: socket.socket, delay: float = 0.0) -> None:
    """Copy one direction until its end, `delay` seconds late, and pass the end on."""
    loop = asyncio.get_running_loop()
    # Bytes travel side by side: a long line is late, not narrow.
    travelling: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(1024)

    async def arrive() -> None:
        while True:
            due, data = await travelling.get()
            await asyncio.sleep(due - loop.time())
            if not data:
                return target.shutdown(socket.SHUT_WR)
            await loop.sock_sendall(target, data)

    async with asyncio.TaskGroup() as ends:
        ends.create_task(arrive())
        data = b"something"
        while data:
            data = await loop.sock_recv(source, CHUNK)
            await travelling.put((loop.time() + delay, data))


def delay_of(leader: Path, port: int) -> float:
    """Seconds that a new connection to this port takes each way."""
    try:
        return float(leader.with_name("delay").read_text()) if port == SLOWED else 0.0
    except OSError:
        return 0.0


def reset(connection: socket.socket) -> None:
    """Close with a reset: the nearest thing to a refused connection after it was accepted."""
    linger_not = struct.pack("ii", 1, 0)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_not)
    connection.close()


async def carry(client: socket.socket, leader: Path, port: int) -> None:
    """Serve one connection from accept to close."""
    client.setblocking(False)
    try:
        delay = delay_of(leader, port)
        await asyncio.sleep(2 * delay)  # the handshake of TCP
        inside = socket_inside(leader)
        inside.setblocking(False)
        with inside:
            await asyncio.get_running_loop().sock_connect(inside, ("127.0.0.1", port))
            # A line does not hold back small packets until the last one is acknowledged.
            for end in (client, inside):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # A task group, because it ends the other direction before its sockets are closed.
            async with asyncio.TaskGroup() as directions:
                directions.create_task(copy(client, inside, delay))
                directions.create_task(copy(inside, client, delay))
            client.close()
    except* (OSError, ValueError):
        reset(client)


async def accept(listener: socket.socket, leader: Path, port: int) -> None:
    """Accept for ever."""
    listener.setblocking(False)
    carried: set[asyncio.Task[None]] = set()
    while True:
        client, _ = await asyncio.get_running_loop().sock_accept(listener)
        task = asyncio.create_task(carry(client, leader, port))
        carried.add(task)
        task.add_done_callback(carried.discard)


async def main(leader: Path, doors: list[str]) -> None:
    """Serve all listeners until the process is ended."""
    pairs = [door.split(":") for door in doors]
    await asyncio.gather(*(accept(socket.socket(fileno=int(f)), leader, int(p)) for f, p in pairs))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2:]))
