"""Who listens on a port is found among real sockets of this process."""

from __future__ import annotations

import os
import socket

from cutover_agent.listener import holders_of, listening_inodes, stranger


def test_a_listening_socket_is_found_with_its_process() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        found = holders_of(listening_inodes(port))
        assert [process.pid for process in found] == [os.getpid()]
        assert f"pid {os.getpid()} " in stranger(port, "somebody-else.service")
        assert stranger(port, found[0].unit) == "" or not found[0].unit
    assert stranger(port, "somebody-else.service") == ""


def test_a_connection_is_no_listener() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    with server, socket.create_connection(server.getsockname()) as client:
        assert listening_inodes(client.getsockname()[1]) == frozenset()
