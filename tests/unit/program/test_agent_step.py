"""What runs on a host that has no agent yet."""

from __future__ import annotations

import subprocess
import sys

import pytest

import build
from components.agent import _BOOTSTRAP

ARCHIVE = build.build()


@pytest.mark.parametrize(
    "text",
    ["", "no base64", ARCHIVE.packed[:-400], ARCHIVE.packed.replace("A", "B", 1), "QlpoOQ=="],
)
def test_a_damaged_agent_is_not_installed(text: str) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-c", _BOOTSTRAP],
        input=f"{ARCHIVE.digest}\n{text}",
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (
        1,
        "the agent arrived damaged: run pulumi up again\n",
    )


def test_the_agent_travels_in_a_third_of_its_size_at_most() -> None:
    assert len(ARCHIVE.packed) < len(ARCHIVE.data) / 3
