"""Raw additions to a unit: which go in, which are refused, which are warned about."""

from __future__ import annotations

from typing import Any

import pytest

from cutover.advice import advice
from cutover.units import render_unit
from tests.unit.program.samples import deployment, fields
from tests.unit.program.test_deployment import refusal


def test_additions_stand_at_the_end_of_their_section_as_they_were_written() -> None:
    unit = render_unit(
        deployment(
            additions={
                "Unit": {"Documentation": "man:x"},
                "Service": {"Nice": "-5", "ExecStartPre": ["/bin/a $$x %n", "-/bin/b"]},
            }
        )
    )
    head, _, service = unit.partition("[Service]")
    assert head.endswith("Documentation=man:x\n\n")
    assert service.partition("[Install]")[0].endswith(
        "Nice=-5\nExecStartPre=/bin/a $$x %n\nExecStartPre=-/bin/b\n\n"
    )


@pytest.mark.parametrize(
    ("section", "name", "value", "says"),
    [
        ("Service", "Type", "notify", "is exec: engines send no ready message"),
        ("Service", "KillMode", "process", "is mixed: "),
        ("Service", "KillMode", "none", "is mixed: "),
        ("Service", "PrivateDevices", "yes", "hides the GPUs"),
        ("Service", "DeviceAllow", "char-nvidia-frontend rw", "hides the GPUs"),
        ("Service", "DevicePolicy", "closed", "hides the GPUs"),
        ("Service", "StartLimitIntervalSec", "0", "stands in [Unit]"),
        ("Service", "TimeoutStopSec", "infinity", "is written from timeouts.stop"),
        ("Service", "TimeoutStartSec", "90", "is written from timeouts.load"),
        ("Service", "ExecStart", "/bin/true", "is written from engine and args"),
        ("Service", "Environment", "A=b", "is written from env"),
        ("Service", "EnvironmentFile", '"-/etc/x.env"', "is written from secrets"),
        ("Service", "LimitMEMLOCK", "unlimited", "is written from limits.memlock"),
        ("Service", "RemainAfterExit", "yes", "hides that the server has ended"),
        ("Unit", "RefuseManualStart", "yes", "keeps a cutover from starting the unit"),
    ],
)
def test_an_addition_that_breaks_a_cutover_is_refused(
    section: str, name: str, value: str, says: str
) -> None:
    told = refusal(fields(additions={section: {name: value}}))
    assert told.startswith(f"d: additions.{section}.{name}: ") and says in told
    assert told.endswith(("remove it", "set that instead"))


@pytest.mark.parametrize("value", ["a\nExecStart=/bin/x", "ends in \\", "x\0"])
def test_an_addition_stays_on_its_line(value: str) -> None:
    assert refusal(fields(additions={"Service": {"Nice": value}})).startswith("d: additions.")


def test_no_addition_reaches_the_install_section() -> None:
    assert refusal(fields(additions={"Install": {"Alias": "x"}})).startswith("d: additions.Install")


def test_switching_off_what_would_break_is_fine() -> None:
    assert "PrivateDevices=no" in render_unit(
        deployment(additions={"Service": {"PrivateDevices": "no"}})
    )


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"additions": {"Service": {"ExecStartPre": "/bin/x"}}}, "additions.Service.ExecStartPre"),
        ({"env": {"PATH": "/opt/vllm/bin"}}, "env.PATH: is taken as it is and lacks /usr/bin"),
        ({"env": {"PATH": "/opt/v/bin:$PATH"}}, "env.PATH: holds a `$`"),
        ({"args": {"max-modle-len": 1}}, "did you mean max-model-len?"),
        ({"parsers": {"tool_call": "kimi_k3x"}}, "did you mean kimi_k3?"),
    ],
)
def test_what_is_legal_and_doubtful_is_warned_about(changes: dict[str, Any], says: str) -> None:
    found = [text for text in advice(deployment(**changes)) if says in text]
    assert found and found[0].startswith("deployments/small.yaml: ")


def test_a_plain_deployment_has_no_warning() -> None:
    assert advice(deployment()) == []
    assert advice(deployment(args={"max-num-seqs": 4, "no-enable-prefix-caching": True})) == []


def test_a_wrapper_that_keeps_the_stop_signal_to_itself_is_warned_about() -> None:
    words = ["/opt/conda/bin/conda", "run", "-n", "vllm", "vllm", "serve"]
    one = deployment(engine="command", command=words, python=None)
    assert "does not pass the stop signal on" in advice(one)[0]


@pytest.mark.parametrize(
    ("engine", "release", "changes", "expected"),
    [
        (
            "vllm",
            "0.33.0",
            {"args": {"max-modle-len": 1}},
            "args.max-modle-len: is no option of vllm 0.33.0: did you mean max-model-len?",
        ),
        (
            "sglang",
            "0.5.23",
            {"parsers": {"reasoning": "kimi-k2"}},
            "parsers.reasoning: kimi-k2 is no parser of sglang 0.5.23: did you mean kimi_k2?",
        ),
    ],
)
def test_a_stated_release_makes_an_unknown_name_an_error(
    engine: str, release: str, changes: dict[str, Any], expected: str
) -> None:
    assert refusal(fields(engine=engine, engine_version=release, **changes)) == f"d: {expected}"


def test_a_release_that_is_not_known_only_warns() -> None:
    one = deployment(engine_version="0.1.0", args={"max-modle-len": 1})
    assert "did you mean" in advice(one)[0]
