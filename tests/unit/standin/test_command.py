"""The stand-in's texts and variables for a command: pure functions."""

from __future__ import annotations

import pytest

from standin.command import environment, quoted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", '"plain"'),
        ('say "hi"\n\tthere\\', r'"say \"hi\"\n\tthere\\"'),
        ("größer ✓", '"größer ✓"'),
        ("\0\x1b\x7f", r'"\x00\x1b\x7f"'),
        ("\u200b\U000e0001", r'"\u200b\U000e0001"'),
    ],
)
def test_a_script_is_quoted_on_one_line(text: str, expected: str) -> None:
    assert quoted(text) == expected


def test_earlier_output_is_sent_unless_turned_off_and_may_be_refused() -> None:
    state = {"environment": {"A": "1"}, "stdout": "out", "stderr": ""}
    own = ("A", "1", False)
    assert environment(state) == [own, ("PULUMI_COMMAND_STDOUT", "out", True)]
    assert environment({**state, "addPreviousOutputInEnv": False}) == [own]
    assert environment({}) == []
