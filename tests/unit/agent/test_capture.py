"""A server started by hand becomes a unit that starts the same thing."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cutover_agent import environment
from cutover_agent.capture import Started, parse_environ, quoted, started, unit_text
from cutover_agent.processes import read_process


def test_a_process_is_known_by_command_environment_folder_and_user(tmp_path: Path) -> None:
    code = "import time; time.sleep(60)"
    environ = {"PATH": os.environ["PATH"], "A": 'x "y" $z', "INVOCATION_ID": "no"}
    with subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=environ) as child:
        deadline = time.monotonic() + 20
        how = None
        while how is None or how.argv[1:] != ("-c", code):  # not yet another program
            assert time.monotonic() < deadline
            process = read_process(child.pid)
            how = started(process) if process else None
        child.kill()
    assert how == Started((sys.executable, "-c", code), {"PATH": environ["PATH"], "A": 'x "y" $z'},
                          str(tmp_path), "root")  # fmt: skip


def test_what_belongs_to_the_old_process_alone_is_left_out() -> None:
    raw = b"A=1\0INVOCATION_ID=x\0JOURNAL_STREAM=8:1\0_=/usr/bin/nohup\0BAD-NAME=1\0B=a=b\0\0"
    assert parse_environ(raw) == {"A": "1", "B": "a=b"}


@pytest.mark.parametrize("word", ["plain", 'a "b"', "it's", "$HOME", "50%", "a\\b", "a b", ";"])
def test_a_word_reaches_the_program_as_it_is(word: str) -> None:
    text = quoted(word).replace("%%", "%").replace("$$", "$")
    assert shlex.split(text) == [word.replace("$", "$")]


@pytest.mark.parametrize("value", ["plain", 'a "b"', "$x `y` \\z", "a=b", ""])
def test_a_variable_is_read_back_as_it_was(value: str) -> None:
    assert environment.value(environment.line("A", value) + "\n", "A") == value


def test_the_unit_says_all_that_is_needed() -> None:
    how = Started(("/opt/vllm/bin/python3", "-m", "vllm", "--x", '{"a": 1}'), {}, "/srv/a", "kim")
    text = unit_text(how)
    assert 'ExecStart="/opt/vllm/bin/python3" "-m" "vllm" "--x" "{\\"a\\": 1}"\n' in text
    assert "User=kim\nWorkingDirectory=/srv/a\nEnvironmentFile=/etc/cutover/by-hand.env\n" in text
