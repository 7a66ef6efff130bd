"""When a hand-written unit runs what the catalogue declares."""

from __future__ import annotations

import pytest

from cutover.units import render_unit
from cutover_agent.adopt import declared, differences, pending
from cutover_agent.unit_text import Service, Unreadable, read_service, words
from tests.unit.agent.samples import order
from tests.unit.program.samples import deployment

OURS = """
[Service]
User=root
Environment=CUDA_DEVICE_ORDER=PCI_BUS_ID PATH=/opt/vllm/bin:/bin PYTHONUNBUFFERED=1
Environment='JSON={"a": "b c"}'
Environment=NCCL_PROTO=LL
EnvironmentFile=/etc/cutover/m.env
ExecStart=/opt/vllm/bin/python3 -m vllm.entrypoints.openai.api_server \\
    --model /models/M \\
    --served-model-name "m one"
KillMode=mixed
Restart=on-failure

[Install]
WantedBy=multi-user.target
"""

BY_HAND = """
# what an operator writes
[Unit]
Description=my model

[Service]
Environment="JSON={\\"a\\": \\"b c\\"}" NCCL_PROTO=LL
ExecStart=/opt/vllm/bin/python3 -m vllm.entrypoints.openai.api_server --model /models/M \\
 --served-model-name 'm one'
Restart=on-failure

[Install]
WantedBy=multi-user.target
"""

DECLARED = {"JSON": '{"a": "b c"}', "NCCL_PROTO": "LL"}


def service(text: str = BY_HAND) -> Service:
    return read_service(text)


def test_other_quotes_lines_and_order_make_no_difference() -> None:
    assert differences(service(OURS), service(), DECLARED) == []
    moved = BY_HAND.replace("--model /models/M", "--served-model-name='m one' --model=/models/M")
    moved = moved.replace(" --served-model-name 'm one'", "")
    assert differences(service(OURS), service(moved), DECLARED) == []


def test_what_ours_adds_is_pending() -> None:
    assert pending(service(OURS), service()) == [
        "Environment=CUDA_DEVICE_ORDER=PCI_BUS_ID PATH=/opt/vllm/bin:/bin PYTHONUNBUFFERED=1",
        "KillMode=mixed",
    ]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "/models/M",
            "/models/N",
            "command: --model /models/M is missing, --model /models/N is not declared",
        ),
        (" --served-model-name 'm one'", "", "command: --served-model-name m one is missing"),
        ("'m one'", "'m one' --port 1", "command: --port 1 is not declared"),
        ("'m one'", "'m one' --api-key poison", "command: --api-key [secret] is not declared"),
        ("Restart=", "User=ada\nRestart=", "user: ada, declared root"),
        ("Restart=", "WorkingDirectory=/srv\nRestart=", "folder: /srv, declared /"),
        ("NCCL_PROTO=LL", "NCCL_PROTO=Simple", "variable NCCL_PROTO: another value"),
        (" NCCL_PROTO=LL", "", "variable NCCL_PROTO: not set"),
    ],
)
def test_whatever_the_process_would_notice_is_a_difference(old: str, new: str, says: str) -> None:
    assert old in BY_HAND
    assert differences(service(OURS), service(BY_HAND.replace(old, new)), DECLARED) == [says]


def test_a_secret_is_compared_and_never_told() -> None:
    theirs = service(BY_HAND.replace("NCCL_PROTO=LL", "NCCL_PROTO=LL HF_TOKEN=poison"))
    assert differences(service(OURS), theirs, {"HF_TOKEN": "poison"}) == []
    assert differences(service(OURS), theirs, {"HF_TOKEN": "other"}) == [
        "variable HF_TOKEN: another value"
    ]


def test_gpus_are_compared_where_they_are_not_all_of_the_host() -> None:
    ours = service(BY_HAND.replace("NCCL_PROTO=LL", "CUDA_VISIBLE_DEVICES=0,1 PATH=/ours"))
    fills = order(host_gpus=2, gpus=(0, 1), environment={"PATH": "/mine"})
    assert declared(fills, ours) == {"PATH": "/mine"}, "the catalogue's word outranks the policy"
    part = order(host_gpus=8, gpus=(0, 1))
    assert declared(part, ours) == {"CUDA_VISIBLE_DEVICES": "0,1"}


def test_a_drop_in_that_empties_the_command_first_wins() -> None:
    text = BY_HAND + "\n[Service]\nExecStart=\nExecStart=/bin/other\n"
    assert service(text).argv == ("/bin/other",)


@pytest.mark.parametrize("line", ["ExecStart=/bin/a %h", "ExecStart=/bin/a\nExecStart=/bin/b", ""])
def test_what_only_systemd_could_tell_is_not_guessed(line: str) -> None:
    with pytest.raises(Unreadable):
        read_service(f"[Service]\n{line}\n")


def test_words_are_read_as_systemd_does() -> None:
    assert words(r"""a "b c" 'd "e"' f\x20g "\"q\"" '' 100%%""") == [
        "a", "b c", 'd "e"', "f g", '"q"', "", "100%",
    ]  # fmt: skip


def test_a_unit_that_the_program_renders_is_read_back_as_it_was_meant() -> None:
    wanted = deployment(env={"ODD": """a "b" 'c' \\ 100% $x"""})
    found = read_service(render_unit(wanted))
    assert found.argv[0] == wanted.python
    assert found.variables["ODD"] == wanted.env["ODD"]
    assert differences(found, found, wanted.env) == []
    assert found.files == (f"/etc/cutover/{wanted.name}.env",)
