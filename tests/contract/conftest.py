"""The plugins under test: the stand-in, and the real one if CUTOVER_REAL_PLUGIN names it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import Host, start
from tests.contract.client import Plugin, running

STANDIN = Path(__file__).parents[2] / "dev" / "standin" / "pulumi-resource-command"
REAL = os.environ.get("CUTOVER_REAL_PLUGIN")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "executable" in metafunc.fixturenames:
        plugins = {"stand-in": STANDIN} | ({"real": Path(REAL)} if REAL else {})
        metafunc.parametrize("executable", plugins.values(), ids=plugins.keys(), scope="module")


@pytest.fixture(scope="module")
def plugin(executable: Path) -> Iterator[Plugin]:
    with running(executable) as plugin:
        yield plugin


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """A practice host; on its port 8000 a second sshd that takes variables and a password."""
    with start("contract", state=tmp_path_factory.mktemp("hosts")) as host:
        host.exec(["chpasswd"], text="root:practice\n")
        options = ["AcceptEnv=*", "PermitRootLogin=yes", "PasswordAuthentication=yes"]
        sshd = ["/usr/sbin/sshd", "-p", "8000", *(f"-o{option}" for option in options)]
        host.exec(sshd)
        yield host
