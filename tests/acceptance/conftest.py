from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import Host, start
from tests.acceptance.stack import SGLANG, Stack, serves, settings, start_detached


@pytest.fixture
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """A practice host with nothing of ours on it."""
    with start("box", state=tmp_path_factory.mktemp("hosts")) as host:
        yield host


@pytest.fixture
def stack(box: Host, tmp_path: Path) -> Stack:
    """A stack for that host, with the production deployment active and not yet up."""
    made = Stack(tmp_path)
    made.configure(active=SGLANG, hosts={"box": settings(box)})
    return made


@pytest.fixture
def serving(stack: Stack, box: Host) -> Stack:
    """The same stack after its first `up`."""
    stack.up()
    assert serves(box)
    return stack


@pytest.fixture
def canary(box: Host) -> int:
    """An unrelated Python process on the host; its pid there."""
    return start_detached(box, "python3", "-c", "import time; time.sleep(3600)")
