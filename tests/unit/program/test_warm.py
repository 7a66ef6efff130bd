"""Which deployments are read ahead, and how long their requests are waited for."""

from __future__ import annotations

from typing import Any

import pytest

from cutover.warm import READS_BY_ITSELF, warm_for
from tests.unit.program.samples import deployment


@pytest.mark.parametrize(
    ("changes", "read", "says"),
    [
        ({}, True, ""),
        ({"warm": "off"}, False, ""),
        ({"warm": False}, False, ""),
        ({"args": {"load-format": "safetensors"}}, True, ""),
        ({"args": {"load-format": "instanttensor"}}, False, "reads past the page cache"),
        ({"args": {"load-format": "instanttensor"}, "warm": "on"}, True, ""),
        ({"args": {"load-format": "dummy"}, "warm": True}, True, ""),
    ],
)
def test_auto_follows_the_loader_and_the_operators_word_counts_more(
    changes: dict[str, Any], read: bool, says: str
) -> None:
    got = warm_for(deployment(**changes), 7)
    assert (got.read, got.mib_per_second) == (read, 7)
    assert says in got.why_not and bool(says) == bool(got.why_not)


def test_a_server_whose_loader_is_not_known_is_read_ahead_only_on_request() -> None:
    own: dict[str, Any] = {
        "engine": "command",
        "python": None,
        "command": ["/bin/serve"],
        "args": {},
    }
    assert not warm_for(deployment(**own), 1).read
    assert warm_for(deployment(**own, warm="on"), 1).read


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [
        ({}, 30),
        ({"timeouts": {"drain": 0}}, 0),
        ({"timeouts": {"drain": 90}}, 90),
        ({"args": {"shutdown-timeout": 60}}, 0),
        ({"args": {"shutdown-timeout": 60}, "timeouts": {"drain": 5}}, 5),
    ],
)
def test_requests_are_waited_for_unless_the_engine_does_that_itself(
    changes: dict[str, Any], seconds: int
) -> None:
    assert deployment(**changes).wait_seconds == seconds


def test_every_loader_that_reads_by_itself_is_documented() -> None:
    from cutover.reference import page

    text = page()
    assert all(f"`{name}`" in text for name in READS_BY_ITSELF)
