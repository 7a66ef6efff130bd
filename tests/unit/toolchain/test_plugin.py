from __future__ import annotations

from pathlib import Path

import pytest

from toolchain.plugin import ASK_AGAIN_AFTER_S, choose, link, may_download

STANDIN = Path("/project/standin")
ON_PATH = Path("/usr/local/bin/plugin")
AT_HOME = Path("/home/person/.pulumi/plugin")


@pytest.mark.parametrize(
    ("real", "chosen"),
    [
        ([ON_PATH, AT_HOME], ON_PATH),
        ([AT_HOME], AT_HOME),
        ([], STANDIN),
    ],
)
def test_a_real_plugin_wins_over_the_standin(real: list[Path], chosen: Path) -> None:
    assert choose(real, STANDIN) == chosen


@pytest.mark.parametrize(
    ("env", "failed_s_ago", "tries"),
    [
        ({}, None, True),
        ({"CI": ""}, None, True),
        ({"CI": "true"}, None, False),
        ({}, 60.0, False),
        ({}, ASK_AGAIN_AFTER_S + 1.0, True),
        ({"CI": "true"}, ASK_AGAIN_AFTER_S + 1.0, False),
    ],
)
def test_the_download_is_tried_outside_ci_and_once_a_day(
    env: dict[str, str], failed_s_ago: float | None, tries: bool
) -> None:
    assert may_download(env, failed_s_ago) is tries


def test_a_real_plugin_installed_later_takes_the_place_of_the_standin(tmp_path: Path) -> None:
    standin, real = tmp_path / "standin", tmp_path / "real"
    standin.write_text("stand-in")
    real.write_text("real")
    place = tmp_path / "plugins" / "plugin"

    assert link(place, standin)
    assert place.read_text() == "stand-in"
    assert link(place, real)
    assert place.read_text() == "real"
    assert not link(place, real)
    assert [left.name for left in place.parent.iterdir()] == ["plugin"]
