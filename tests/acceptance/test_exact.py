"""A real systemd hands a process the very bytes that a deployment says."""

from __future__ import annotations

import random

import pytest

from cutover.catalogue import Deployment, load_catalogue
from cutover.fields import LONGEST_VALUE, process_text
from cutover.units import render_environment, render_unit
from sandbox import Host
from tests.acceptance.stack import ROOT

UNITS = 10
ARGUMENTS, VARIABLES, SECRETS = 400, 300, 300
"""Values of each unit; together with the number of units more than ten thousand."""

DUMP = """#!/usr/bin/python3
import os, sys
folder = "/run/dump/" + sys.argv[1]
os.makedirs(folder)
for name in ("cmdline", "environ"):
    with open("/proc/self/" + name, "rb") as source, open(folder + "/" + name, "wb") as target:
        target.write(source.read())
"""
SPECIAL = [
    *"'\"\\$%;#{}=~ \t\x01\x1b\x7f-@!:|&<>()[]*?`a0é漢\u2028\U0001f600",
    *("%n", "%%", "\n", "\n\n", "$HOME", "${HOME}", "$$", "\\n", "\\x41", "{{ x }}", "{% raw %}"),
    *('{"a": "b c"}', "it's", " ;", "-c role=app"),
]


def value(chance: random.Random) -> str:
    """Text that a field accepts: mostly of what means something to somebody on the way."""
    if chance.random() < 0.7:
        text = "".join(chance.choices(SPECIAL, k=chance.randint(0, 8)))
    else:
        text = "".join(chr(chance.randint(1, 0x10FFFF)) for _ in range(chance.randint(0, 12)))
    try:
        return process_text(text)
    except ValueError:
        return value(chance)


def awkward(number: int, chance: random.Random) -> tuple[Deployment, dict[str, str]]:
    """A deployment of a thousand random values, and its secrets."""
    secrets = {f"S{n}": value(chance) for n in range(SECRETS)}
    one = Deployment.model_validate(
        {
            "name": f"exact-{number}",
            "description": f"Exact {number}",
            "unit": f"exact-{number}.service",
            "engine": "command",
            "command": ["/usr/local/bin/dump", str(number), *(value(chance) for _ in range(200))],
            "checkpoint": "/models/MiniMax-M2.5",
            "served_names": ["x"],
            "args": {
                **{f"x{n}": value(chance) for n in range(ARGUMENTS - 200)},
                "long": "%$ é" * (LONGEST_VALUE // 5),
            },
            "env": {f"V{n}": value(chance) for n in range(VARIABLES)},
            "secrets": list(secrets),
        }
    )
    return one, secrets


def expected_arguments(one: Deployment) -> list[str]:
    """Written down from the catalogue's page, and not by the code under test."""
    words = list(one.command)
    for name, text in one.args.items():
        words += [f"--{name}={text}"] if text.startswith("-") else [f"--{name}", text]
    return words


@pytest.mark.timeout(600)
def test_ten_thousand_random_values_arrive_byte_for_byte(box: Host) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    chance = random.Random(seed)
    box.write("/usr/local/bin/dump", DUMP, 0o755)
    made = [awkward(number, chance) for number in range(UNITS)]
    for one, secrets in made:
        box.write(f"/etc/systemd/system/{one.unit}", render_unit(one))
        box.write(f"/etc/cutover/{one.name}.env", render_environment(one, secrets), 0o600)
    box.exec(["systemctl", "daemon-reload"])
    box.exec(["systemctl", "start", "--wait", *(one.unit for one, _ in made)], timeout=300)
    compared = 0
    for number, (one, secrets) in enumerate(made):
        dumped = f"/run/dump/{number}"
        arguments = box.read(f"{dumped}/cmdline").split("\0")[2:-1]
        wanted = expected_arguments(one)[1:]
        assert arguments == wanted, f"seed {seed}, unit {number}"
        pairs = (entry.partition("=") for entry in box.read(f"{dumped}/environ").split("\0"))
        environment = {name: text for name, _, text in pairs}
        for variables in (one.env, secrets):
            assert {name: environment.get(name) for name in variables} == variables, f"seed {seed}"
        compared += 200 + len(one.args) + len(one.env) + len(secrets)
    assert compared > 10_000


def test_systemd_has_nothing_to_say_about_any_unit_of_the_catalogue(box: Host) -> None:
    catalogue = load_catalogue(ROOT / "deployments")
    assert box.exec(["systemd-analyze", "--version"]).stdout.startswith("systemd 252 ")
    for one in catalogue.values():
        path = f"/root/{one.unit}"
        box.write(path, render_unit(one))
        told = box.exec(["systemd-analyze", "verify", path])
        assert (told.stdout, told.stderr) == ("", ""), one.name


def test_the_verifier_would_have_said_something(box: Host) -> None:
    one = load_catalogue(ROOT / "deployments")["minimax-m25"]
    wrong = render_unit(one).replace("LimitNOFILE=1048576", "LimitNOFILE=1X")
    box.write(f"/root/{one.unit}", wrong)
    told = box.exec(["systemd-analyze", "verify", f"/root/{one.unit}"], check=False)
    assert "Failed to parse resource value" in told.stderr
