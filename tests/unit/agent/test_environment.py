"""One value of an environment file as the program writes it, and masking of all of them."""

from __future__ import annotations

import pytest

from cutover.quoting import environment_file_line
from cutover_agent.environment import mask, path, value

VALUES = [
    "plain",
    "a b",
    'say "hi"',
    "back\\slash",
    "tail\\",
    "$HOME `id`",
    "95% #1",
    "it's",
    "=x=",
    "é",
    " ",
    "a\u2028b",
    "a\nb\n\nOTHER=y\n# c\\",
    "a\x0bb\x0cc\x1cd\x85e",
]


@pytest.mark.parametrize("secret", VALUES, ids=ascii)
def test_a_value_is_read_back_as_the_program_was_given_it(secret: str) -> None:
    text = f'# made by cutover\n{environment_file_line("KEY", secret)}\nOTHER="x"\n'
    assert value(text, "KEY") == secret
    assert value(text, "OTHER") == "x"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("KEY=plain\n", "plain"),
        ("KEY=\n", ""),
        ('KEY=""\n', ""),
        ("# KEY=old\nKEY=new\n", "new"),
        ("MY_KEY=no\n", None),
        ("KEY2=no\n", None),
        ("", None),
    ],
)
def test_only_the_variable_of_that_very_name_counts(text: str, expected: str | None) -> None:
    assert value(text, "KEY") == expected


def test_every_secret_is_masked_and_the_rest_is_left() -> None:
    text = 'A="sk-1"\n# B="not a secret"\nC=t0k\n'
    log = "key sk-1, token t0k, not a secret"
    assert mask(text, log) == "key [secret], token [secret], not a secret"


@pytest.mark.parametrize("text", ['A="abc"\nB="abcdef"\n', 'B="abcdef"\nA="abc"\n'])
def test_a_secret_that_starts_like_another_leaves_no_tail(text: str) -> None:
    assert mask(text, "got abcdef and abc") == "got [secret] and [secret]"


def test_each_telling_line_of_a_long_secret_is_masked() -> None:
    text = environment_file_line("CERT", "{\nfirst-line\nsecond-line\n}")
    assert mask(text, "{got second-line}") == "{got [secret]}"


def test_a_secret_that_is_part_of_the_mask_does_not_break_it() -> None:
    assert mask('A="abc"\nB="secret"\n', "got abc") == "got [secret]"


@pytest.mark.parametrize("text", ['A=""\n', "A=\n", ""])
def test_an_empty_secret_masks_nothing(text: str) -> None:
    assert mask(text, "got abc") == "got abc"


def test_the_file_is_named_as_the_deployment() -> None:
    assert str(path("small")) == "/etc/cutover/small.env"
