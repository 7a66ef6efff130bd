"""The persistence mode, from what nvidia-smi says of every card."""

from __future__ import annotations

import pytest

from cutover_agent.facts import persistence_mode


@pytest.mark.parametrize(
    ("modes", "means"),
    [
        (["Enabled", "Enabled"], "on"),
        (["Disabled", "Disabled"], "off"),
        (["Enabled", "Disabled"], "off"),
        (["Enabled", "[N/A]"], "unknown"),
        ([], "unknown"),
    ],
)
def test_one_card_without_it_makes_every_look_slow(modes: list[str], means: str) -> None:
    assert persistence_mode([{"index": "0", "persistence_mode": mode} for mode in modes]) == means


def test_a_driver_that_does_not_know_the_field_leaves_it_unknown() -> None:
    assert persistence_mode([{"index": "0"}]) == "unknown"
