"""How a plugin reaches a host."""

from __future__ import annotations

import socket
import struct
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from sandbox import Host
from tests.contract.client import Failed, Plugin, connection, running

pytestmark = [pytest.mark.practice_host, pytest.mark.xdist_group("contract")]

REFUSED = "connect: connection refused"


def say_hello(plugin: Plugin, where: dict[str, Any], name: str = "one") -> str:
    inputs = {"connection": where, "create": "echo hello", "addPreviousOutputInEnv": False}
    stdout = plugin.create(inputs, name)["stdout"]
    assert isinstance(stdout, str)
    return stdout


def failure(plugin: Plugin, where: dict[str, Any], name: str = "one") -> str:
    with pytest.raises(Failed) as failed:
        say_hello(plugin, where, name)
    return str(failed.value)


def without_key(host: Host, **changes: Any) -> dict[str, Any]:
    where = connection(host, **changes)
    del where["privateKey"]
    return where


def test_a_pinned_host_key_is_checked(plugin: Plugin, host: Host) -> None:
    other = host.key_path.with_suffix(".pub").read_text()
    assert say_hello(plugin, connection(host, hostKey=host.host_key)) == "hello"
    text = failure(plugin, connection(host, hostKey=other))
    assert text == "after 0 failed attempts: ssh: handshake failed: ssh: host key mismatch"
    text = failure(plugin, connection(host, hostKey="no key"))
    assert text.startswith("failed to parse host key: ssh: no key found")


def test_a_password_works(plugin: Plugin, host: Host) -> None:
    assert say_hello(plugin, without_key(host, port=8000, password="practice")) == "hello"


def test_no_way_to_log_in_is_told(plugin: Plugin, host: Host) -> None:
    assert failure(plugin, without_key(host)) == (
        "after 0 failed attempts: ssh: handshake failed: ssh: unable to authenticate, "
        "attempted methods [none], no supported methods remain"
    )


def test_dialling_is_repeated_up_to_the_limit(plugin: Plugin, host: Host) -> None:
    text = failure(plugin, connection(host, port=1, dialErrorLimit=2), "dialling")
    assert text == f"after 2 failed attempts: dial tcp {host.address}:1: {REFUSED}"
    assert [each.text for each in plugin.messages("dialling")] == [
        "Dial 1/2 failed: retrying",
        "Dial 2/2 failed: retrying",
    ]


def test_an_address_that_says_nothing_is_given_up_after_each_dial_s_time(
    plugin: Plugin, host: Host
) -> None:
    with socket.socket() as hole, socket.socket() as last:
        hole.bind((host.address, 0))
        hole.listen(0)
        last.connect(hole.getsockname())  # the queue is full: no other gets an answer
        port = hole.getsockname()[1]
        where = connection(host, port=port, dialErrorLimit=1, perDialTimeout=1)
        started = time.monotonic()
        text = failure(plugin, where)
        assert time.monotonic() - started >= 2
    assert text == f"after 1 failed attempts: dial tcp {host.address}:{port}: i/o timeout"


def test_a_host_that_resets_the_connection_is_dialled_again(plugin: Plugin, host: Host) -> None:
    with socket.create_server((host.address, 0)) as door:
        taken: list[socket.socket] = []

        def reset() -> None:
            for _ in range(2):
                taken.append(door.accept()[0])
                linger_not = struct.pack("ii", 1, 0)
                taken[-1].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_not)
                taken[-1].close()

        with ThreadPoolExecutor() as pool:
            pool.submit(reset)
            port = door.getsockname()[1]
            text = failure(plugin, connection(host, port=port, dialErrorLimit=1))
    assert len(taken) == 2
    assert text.startswith("after 1 failed attempts: "), text


def test_a_dead_agent_is_an_error_even_with_a_key(executable: Path, host: Host) -> None:
    with running(executable, SSH_AUTH_SOCK="/nowhere/agent") as plugin:
        text = failure(plugin, connection(host))
    assert text == "dial unix /nowhere/agent: connect: no such file or directory"


def test_a_living_agent_serves_where_there_is_no_key(
    plugin: Plugin, host: Host, tmp_path: Path
) -> None:
    socket = str(tmp_path / "agent")
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.PIPE, text=True)
    try:
        assert agent.stdout is not None
        agent.stdout.readline()
        add = ["ssh-add", "-q", str(host.key_path)]
        subprocess.run(add, env={"SSH_AUTH_SOCK": socket}, check=True)
        assert say_hello(plugin, without_key(host, agentSocketPath=socket)) == "hello"
    finally:
        agent.terminate()
        agent.wait()


def test_a_key_must_be_a_key_with_no_needless_password(plugin: Plugin, host: Host) -> None:
    assert failure(plugin, connection(host, privateKey="no key")) == "ssh: no key found"
    text = failure(plugin, connection(host, privateKeyPassword="practice"))
    assert text == "ssh: key is not password protected"


def test_an_encrypted_key_needs_its_password(plugin: Plugin, host: Host, tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "x", "-f", locked], check=True)
    text = failure(plugin, connection(host, privateKey=locked.read_text()))
    assert text == "ssh: this private key is passphrase protected"


def test_a_proxy_is_gone_through(plugin: Plugin, host: Host) -> None:
    proxy = connection(host, port=8000)
    inside = connection(host, host="127.0.0.1", port=22, proxy=proxy)
    assert say_hello(plugin, inside) == "hello"
    text = failure(plugin, inside | {"port": 1})
    assert text == (
        "proxy: after 0 failed attempts: ssh: rejected: connect failed (Connection refused)"
    )
    text = failure(plugin, inside | {"proxy": proxy | {"port": 1}})
    assert text == f"proxy: after 0 failed attempts: dial tcp {host.address}:1: {REFUSED}"


def test_each_command_has_a_connection_of_its_own_that_lasts_until_the_plugin_ends(
    executable: Path, host: Host
) -> None:
    inputs = {"connection": connection(host), "create": "echo $PPID"}
    with running(executable) as plugin:
        servers = {plugin.create(inputs)["stdout"] for _ in range(3)}
        assert len(servers) == 3
        host.exec(["kill", "-0", *servers])
    host.exec(
        ["timeout", "10", "sh", "-c", f"while kill -0 {' '.join(servers)}; do sleep 0.1; done"]
    )
