"""What is written for systemd, as text and against a reading of its rules."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutover import quoting
from cutover.fields import plain_text
from tests.unit.program import systemd_reference as systemd


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("plain-1.0_x/y:z=a,b@c+d", "plain-1.0_x/y:z=a,b@c+d"),
        ("", '""'),
        ("two words", '"two words"'),
        ("100%", "100%%"),
        ("(id=%s)", '"(id=%%s)"'),
        ("95% hit rate, box %H", '"95%% hit rate, box %%H"'),
        ("$HOME", "$$HOME"),
        ("${free}", '"$${free}"'),
        ("$$", "$$$$"),
        (
            '{"method": "mtp", "num_speculative_tokens": 2}',
            """'{"method": "mtp", "num_speculative_tokens": 2}'""",
        ),
        ("""{"p":"it's"}""", '''"{\\"p\\":\\"it's\\"}"'''),
        ("it's", '''"it's"'''),
        ('{"max_new_tokens":256}', """'{"max_new_tokens":256}'"""),
        ("{{ messages }}", '"{{ messages }}"'),
        ("/models/my tpl.jinja", '"/models/my tpl.jinja"'),
        ("ends in \\", '"ends in \\\\"'),
        ("\\", '"\\\\"'),
        (";", '";"'),
        ("#x", '"#x"'),
        ("~/x", '"~/x"'),
        (" ", '" "'),
        ("a\tb\x1b\x7f\n\r", '"a\\x09b\\x1b\\x7f\\x0a\\x0d"'),
        ("größer 漢", '"größer 漢"'),
        ("\u2028", '"\u2028"'),
    ],
)
def test_an_argument_is_one_element_of_the_command(value: str, written: str) -> None:
    assert quoting.exec_argument(value) == written


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("x", "V=x"),
        ("", "V="),
        ("(id=%s)", '"V=(id=%%s)"'),
        ("pg://h/d?o=-c role=app", '"V=pg://h/d?o=-c role=app"'),
        ("/opt/v/bin:$PATH", "V=/opt/v/bin:$PATH"),
        ('"abc"', """'V="abc"'"""),
        ("a\\", '"V=a\\\\"'),
    ],
)
def test_a_variable_of_the_unit_is_one_quoted_word(value: str, written: str) -> None:
    assert quoting.assignment("V", value) == written


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("abc", 'V="abc"'),
        ("95% of %H", 'V="95% of %H"'),
        ('"abc"', 'V="\\"abc\\""'),
        ("$x `y` \\", 'V="\\$x \\`y\\` \\\\"'),
        ("it's # no comment; ", 'V="it\'s # no comment; "'),
        ("", 'V=""'),
        ("\\n", 'V="\\\\n"'),
    ],
)
def test_an_environment_file_is_quoted_as_for_a_shell(value: str, written: str) -> None:
    assert quoting.environment_file_line("V", value) == written


def test_paths_are_quoted_only_where_systemd_takes_quotes_off() -> None:
    assert quoting.path_word("/models/a b%i") == '"/models/a b%%i"'
    assert quoting.raw_line("/models/a b%i") == "/models/a b%%i"


def test_a_nul_is_never_written() -> None:
    for write in (quoting.exec_argument, quoting.path_word):
        with pytest.raises(ValueError, match="NUL"):
            write("a\0")
    with pytest.raises(ValueError, match="NUL"):
        quoting.environment_file_line("V", "a\0")


SPECIAL = st.sampled_from(list("""'"\\$%;#{}=~ \t\x01\x7f-@!:a0é漢\u2028"""))
VALUES = st.one_of(
    st.text(SPECIAL, max_size=12),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
)


@settings(deadline=None)
@given(st.lists(VALUES, max_size=6))
def test_systemd_hands_over_the_arguments_that_were_given(values: list[str]) -> None:
    command = " ".join(["/bin/true", *(quoting.exec_argument(value) for value in values)])
    unit = f"[Service]\nExecStart={command}\nUser=root\n"
    assert systemd.argv_of(unit) == ["/bin/true", *values]


@settings(deadline=None)
@given(st.dictionaries(st.from_regex(r"[A-Z_]{1,8}", fullmatch=True), VALUES, max_size=5))
def test_systemd_hands_over_the_variables_that_were_given(variables: dict[str, str]) -> None:
    lines = [f"Environment={quoting.assignment(*pair)}\n" for pair in variables.items()]
    assert systemd.environment("[Service]\n" + "".join(lines)) == variables
    file = "".join(quoting.environment_file_line(*pair) + "\n" for pair in variables.items())
    assert systemd.environment_file(file) == variables


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=[]), max_size=20))
def test_what_a_field_accepts_can_always_be_encoded(text: str) -> None:
    try:
        plain_text(text)
    except ValueError:
        return
    assert text.encode().decode() == text
    assert not set("\0\n\r") & set(text)
