"""Who listens on a port is found among real sockets of this process."""

from __future__ import annotations

import os
import socket

from cutover_agent.listener import stranger
from cutover_agent.processes import read_processes


def test_whoever_listens_in_place_of_the_unit_is_named_and_the_unit_is_not() -> None:
    mine = read_processes()[os.getpid()].unit
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        assert f"pid {os.getpid()} " in stranger(url, "somebody-else.service")
        assert stranger(url, mine) == "" or not mine
    assert stranger(url, "somebody-else.service") == ""


def test_a_connection_is_no_listener() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    with server, socket.create_connection(server.getsockname()) as client:
        url = f"http://127.0.0.1:{client.getsockname()[1]}"
        assert stranger(url, "somebody-else.service") == ""
