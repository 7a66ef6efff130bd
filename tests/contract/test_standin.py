"""Where the stand-in is, on purpose, not as the real plugin."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox import Host
from tests.contract.client import Failed, Plugin, connection, running
from tests.contract.conftest import STANDIN

pytestmark = [pytest.mark.practice_host, pytest.mark.xdist_group("contract")]


@pytest.fixture(scope="module")
def standin() -> Iterator[Plugin]:
    with running(STANDIN) as plugin:
        yield plugin


def test_it_says_what_it_is_once(standin: Plugin) -> None:
    standin.configure()
    [message] = standin.messages("")
    assert "stand-in" in message.text
    assert not message.passing


def test_a_line_at_which_the_real_plugin_would_hang_is_an_error(
    standin: Plugin, host: Host
) -> None:
    long = {"connection": connection(host), "create": "printf '%65536s\\n' x"}
    with pytest.raises(Failed, match=r"^a line of 64 KiB or more"):
        standin.create(long)
    assert len(standin.create({**long, "logging": "none"})["stdout"]) == 65536
    assert len(standin.create({**long, "create": "printf '%65535s\\n' x"})["stdout"]) == 65535


def test_other_resources_are_refused_with_advice(standin: Plugin) -> None:
    with pytest.raises(Failed, match="only command:remote:Command, not command:local:Command"):
        standin.check({}, kind="command:local:Command")


def test_large_stdin_left_unread_is_always_an_error_where_the_real_plugin_fails_only_often(
    standin: Plugin, host: Host
) -> None:
    done = {"connection": connection(host), "create": "exit 0"}
    assert standin.create({**done, "stdin": "x" * 100_000})["stdout"] == ""
    with pytest.raises(Failed, match=r"^EOF: running "):
        standin.create({**done, "stdin": "x" * 4_000_000})
