from __future__ import annotations

import re
from pathlib import Path

import pytest

from toolchain.golang import required
from toolchain.pins import OLDEST_PULUMI, PLUGIN_VERSION
from toolchain.pulumi import CLI, MODULES, SDK, parse_version

PROJECT = Path(__file__).resolve().parents[3]
PINNED = [PROJECT / "requirements.txt", PROJECT / "dev" / "toolchain" / "uv.txt"]


def pins(text: str) -> dict[str, tuple[str, int]]:
    """Map each package to its version and the number of its digests."""
    blocks = re.findall(r"^([\w.-]+)==(\S+)(.*\n(?:    --hash=.*\n)*)", text, re.MULTILINE)
    return {name: (version, rest.count("--hash=sha256:")) for name, version, rest in blocks}


@pytest.mark.parametrize("file", PINNED, ids=lambda file: file.name)
def test_pinned_packages_have_digests_and_name_no_index(file: Path) -> None:
    text = file.read_text()
    found = pins(text)
    assert len(found) == len(re.findall(r"^\w", text, re.MULTILINE)) > 0
    assert [name for name, (_, digests) in found.items() if not digests] == []
    assert re.findall(r"://|--(?:extra-)?index|--find-links", text) == []


def test_git_does_not_take_what_names_an_index_or_belongs_to_one_checkout() -> None:
    ignored = (PROJECT / ".gitignore").read_text().splitlines()
    assert {"uv.lock", "/.venv/", "/.local/"} <= set(ignored)


def test_the_pinned_sdk_fits_the_oldest_pulumi_and_the_plugin() -> None:
    found = pins(PINNED[0].read_text())
    assert parse_version(found["pulumi"][0]) == OLDEST_PULUMI
    assert found["pulumi-command"][0] == PLUGIN_VERSION


def test_the_pulumi_that_is_built_would_be_good_enough_if_it_were_installed() -> None:
    cli = required((MODULES / "cli" / "go.mod").read_text(), CLI)
    assert parse_version(cli) >= OLDEST_PULUMI


@pytest.mark.parametrize(("module", "package"), [("cli", CLI), ("language", SDK)])
def test_what_is_built_from_go_modules_is_pinned_by_digest(module: str, package: str) -> None:
    version = required((MODULES / module / "go.mod").read_text(), package)
    assert f"{package} {version} h1:" in (MODULES / module / "go.sum").read_text()
