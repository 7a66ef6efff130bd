"""What a plugin runs on a host, and what it tells of it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from sandbox import Host
from tests.contract.client import Failed, Message, Plugin, connection, running, secret

pytestmark = [pytest.mark.practice_host, pytest.mark.xdist_group("contract")]


def inputs(host: Host, create: Any, **more: Any) -> dict[str, Any]:
    where = connection(host)
    return {"connection": where, "create": create, "addPreviousOutputInEnv": False, **more}


def result(outputs: dict[str, Any]) -> tuple[str, str]:
    return outputs["stdout"], outputs["stderr"]


def lines(plugin: Plugin, name: str) -> set[str]:
    messages = plugin.messages(name)
    assert all(message.severity == "INFO" and message.passing for message in messages)
    return {message.text for message in messages}


def test_outputs_lose_their_last_newline_only(plugin: Plugin, host: Host) -> None:
    done = plugin.create(inputs(host, "printf 'a\\r\\n\\n\\n'; echo warned >&2"))
    assert result(done) == ("a\r\n\n", "warned")


def test_stdin_reaches_the_command_and_its_secret_comes_out_plain(
    plugin: Plugin, host: Host
) -> None:
    done = plugin.create(inputs(host, secret("cat"), stdin=secret("größer\n")))
    assert result(done) == ("größer", "")
    assert done["stdin"] == secret("größer\n")


def test_without_create_nothing_runs(plugin: Plugin, host: Host) -> None:
    unreachable = {"connection": connection(host, port=1)}
    assert result(plugin.create(unreachable)) == ("", "")


def test_every_line_is_shown_in_passing(plugin: Plugin, host: Host) -> None:
    plugin.create(inputs(host, "echo one; echo; printf 'two\\r\\n'; printf rest"), "shown")
    assert [message.text for message in plugin.messages("shown")] == ["one", "", "two", "rest"]
    assert lines(plugin, "shown") == {"one", "", "two", "rest"}


@pytest.mark.parametrize(
    ("logging", "shown"),
    [
        ("stdout", {"out"}),
        ("stderr", {"err"}),
        ("stdoutAndStderr", {"out", "err"}),
        ("none", set()),
    ],
)
def test_logging_chooses_what_is_shown_but_not_what_is_kept(
    plugin: Plugin, host: Host, logging: str, shown: set[str]
) -> None:
    done = plugin.create(inputs(host, "echo out; echo err >&2", logging=logging), logging)
    assert result(done) == ("out", "err")
    assert lines(plugin, logging) == shown


def test_a_failure_tells_status_script_and_output_even_if_secret_and_not_logged(
    plugin: Plugin, host: Host
) -> None:
    script = secret("cat; printf '\"ü\"\\t\\001'; exit 3")
    with pytest.raises(Failed) as failed:
        plugin.create(inputs(host, script, stdin=secret("hush\n"), logging="none"))
    quoted = r'''"cat; printf '\"ü\"\\t\\001'; exit 3"'''
    assert str(failed.value) == (
        f'Process exited with status 3: running {quoted}:\nhush\n"ü"\t\x01'
    )


def test_a_killed_command_tells_the_signal(plugin: Plugin, host: Host) -> None:
    with pytest.raises(Failed, match=r"^Process exited with status 143 from signal TERM: running "):
        plugin.create(inputs(host, "kill -TERM $$"))


def test_a_cut_session_is_a_failure_that_keeps_the_output_so_far(
    plugin: Plugin, host: Host
) -> None:
    script = "echo before; sleep 0.3; kill -KILL $PPID; sleep 30"
    with pytest.raises(Failed) as failed:
        plugin.create(inputs(host, script))
    assert str(failed.value) == (
        "wait: remote command exited without exit status or exit signal: "
        f'running "{script}":\nbefore\n'
    )


def test_a_cancelled_command_finishes_in_silence_and_its_result_is_kept(
    executable: Path, host: Host
) -> None:
    script = "touch /started; while [ ! -e /go ]; do sleep 0.05; done; echo went"
    host.exec(["rm", "-f", "/started", "/go"])
    with running(executable) as plugin, ThreadPoolExecutor() as threads:
        created = threads.submit(plugin.create, inputs(host, script))
        host.exec(["sh", "-c", "while [ ! -e /started ]; do sleep 0.05; done"])
        plugin.cancel()
        host.exec(["touch", "/go"])
        assert created.result()["stdout"] == "went"
        assert plugin.messages("one") == []


def test_large_input_and_output_pass(plugin: Plugin, host: Host) -> None:
    text = "x" * 5_000_000
    done = plugin.create(inputs(host, "cat", stdin=text, logging="none"))
    assert done["stdout"] == text


def test_output_that_is_not_utf8_is_a_failure(plugin: Plugin, host: Host) -> None:
    with pytest.raises(Failed, match="invalid UTF-8"):
        plugin.create(inputs(host, "printf '\\377'"))


def test_an_update_runs_update_or_else_create_or_else_nothing(plugin: Plugin, host: Host) -> None:
    state = {**inputs(host, "echo created"), "stdout": "before", "stderr": "warned"}
    both = inputs(host, "echo created", update="echo updated")
    assert result(plugin.update(state, both)) == ("updated", "")
    assert result(plugin.update(state, inputs(host, "echo created"))) == ("created", "")
    neither = {"connection": connection(host)}
    assert result(plugin.update(state, neither)) == ("before", "warned")


def test_a_delete_runs_what_the_state_says(plugin: Plugin, host: Host) -> None:
    state = {**inputs(host, "echo x", delete="cat > /deleted", stdin="gone"), "stdout": "x"}
    plugin.delete({**state, "stderr": ""})
    assert host.read("/deleted") == "gone"
    plugin.delete({"connection": connection(host, port=1), "stdout": "", "stderr": ""})


def test_previous_output_is_sent_and_its_refusal_is_a_warning(plugin: Plugin, host: Host) -> None:
    script = "env | grep PULUMI | sort; echo ran"
    for port, name, expected in (
        (8000, "takes", "PULUMI_COMMAND_STDERR=err\nPULUMI_COMMAND_STDOUT=out\nran"),
        (22, "refuses", "ran"),
    ):
        now = {"connection": connection(host, port=port), "create": script}
        done = plugin.update({**now, "stdout": "out", "stderr": "err"}, now, name)
        assert done["stdout"] == expected
    assert not [each for each in plugin.messages("takes") if each.severity != "INFO"]
    warnings = [each for each in plugin.messages("refuses") if each.severity != "INFO"]
    assert [(each.severity, each.passing) for each in warnings] == [("WARNING", False)] * 2
    assert warnings[0].text.startswith("Unable to set 'PULUMI_COMMAND_STDOUT'. This only works if")


def test_a_refused_variable_stops_the_command(plugin: Plugin, host: Host) -> None:
    wanted = {"environment": {"COLOUR": "red"}}
    taking = {"connection": connection(host, port=8000)}
    assert plugin.create(inputs(host, "echo $COLOUR", **wanted) | taking)["stdout"] == "red"
    with pytest.raises(Failed) as failed:
        plugin.create(inputs(host, "touch /ran", **wanted), "variable")
    assert str(failed.value) == 'could not set environment variable "COLOUR": ssh: setenv failed'
    [message] = plugin.messages("variable")
    assert message == Message("ERROR", message.text, passing=False)
    assert "AcceptEnv" in message.text
    assert host.exec(["test", "-e", "/ran"], check=False).returncode == 1
