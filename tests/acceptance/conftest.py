from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cutover_agent.clock import Deadline, wait_for
from sandbox import Host, start
from tests.acceptance.stack import SGLANG, Stack, serves, settings, start_detached


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Host, Stack]]:
    """A host after its first `up`, switched off: each test that wants one that serves goes on
    from there, which takes a boot and no first `up`.
    """
    with start("box", state=tmp_path_factory.mktemp("hosts")) as host:
        made = Stack(tmp_path_factory.mktemp("stack"))
        made.configure(active=SGLANG, hosts={"box": settings(host)})
        made.up()
        assert serves(host)
        host.shut_down()
        host.save_disk()
        yield host, made


@pytest.fixture
def box(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """A practice host with nothing of ours on it, but for a test that wants it `serving`."""
    if "serving" in request.fixturenames:
        host: Host = request.getfixturevalue("served")[0]
        host.rewind()
        yield host
        host.power_off()
    else:
        with start("box", state=tmp_path_factory.mktemp("hosts")) as host:
            yield host


@pytest.fixture
def stack(box: Host, tmp_path: Path) -> Stack:
    """A stack for that host, with the production deployment active and not yet up."""
    made = Stack(tmp_path)
    made.configure(active=SGLANG, hosts={"box": settings(box)})
    return made


@pytest.fixture
def serving(served: tuple[Host, Stack], box: Host, tmp_path: Path) -> Stack:
    """A stack after its first `up`; its host serves."""
    assert wait_for(lambda: serves(box) is not None, Deadline(60), 0.1)
    return served[1].copy_to(tmp_path)


@pytest.fixture
def canary(box: Host) -> int:
    """An unrelated Python process on the host; its pid there."""
    return start_detached(box, "python3", "-c", "import time; time.sleep(3600)")
