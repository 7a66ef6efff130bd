from __future__ import annotations

import pytest

from toolchain.pins import OLDEST_PULUMI
from toolchain.pulumi import Installed, parse_version, why_not

MAJOR, MINOR, PATCH = OLDEST_PULUMI


@pytest.mark.parametrize(
    "found",
    [
        Installed(OLDEST_PULUMI, has_language_host=True),
        Installed((MAJOR, MINOR, PATCH + 1), has_language_host=True),
        Installed((MAJOR + 1, 0, 0), has_language_host=True),
    ],
)
def test_an_installed_pulumi_that_is_recent_enough_is_used(found: Installed) -> None:
    assert why_not(found) is None


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (None, "no Pulumi is installed"),
        (Installed((MAJOR, MINOR - 1, 99), True), f"{MAJOR}.{MINOR - 1}.99 is older than"),
        (Installed((0, 0, 0), True), "0.0.0 is older than"),
        (Installed(OLDEST_PULUMI, False), "no pulumi-language-python beside it"),
    ],
)
def test_any_other_pulumi_is_refused_with_the_reason(found: Installed | None, reason: str) -> None:
    assert reason in (why_not(found) or "")


@pytest.mark.parametrize(
    ("printed", "version"),
    [
        ("v3.274.1\n", (3, 274, 1)),
        ("3.300.0", (3, 300, 0)),
        ("v3.280.0-alpha.1f2e3d\n", (3, 280, 0)),
        ("", (0, 0, 0)),
        ("command not found", (0, 0, 0)),
    ],
)
def test_the_version_is_read_from_what_pulumi_prints(
    printed: str, version: tuple[int, ...]
) -> None:
    assert parse_version(printed) == version
