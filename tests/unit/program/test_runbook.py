"""The runbook's text."""

from __future__ import annotations

from cutover.runbook import render_runbook
from tests.unit.program.samples import deployment
from tests.unit.program.test_units import CATALOGUE


def test_it_says_what_there_is_why_and_what_was_measured() -> None:
    text = render_runbook("box", list(CATALOGUE.values()))
    for one in CATALOGUE.values():
        assert f"| {one.name} | {one.unit} | " in text
        for figure in one.runbook.measured:
            assert f"- measured: {figure}" in text
        for required in one.requires:
            assert required.sha256 in text
    for command in ("status", "log", "plan", "back", "unlock"):
        assert f"    cutover {command} " in text
    assert "pulumi config set active" in text


def test_what_an_operator_wrote_is_data_and_no_template() -> None:
    one = deployment(runbook={"why": "{{ host }}\n{% raw %}", "notes": "second\nline"})
    text = render_runbook("box", [one])
    assert "{{ host }}\n{% raw %}" in text and "second\nline" in text


def test_notes_change_no_unit() -> None:
    from cutover.units import render_unit

    assert render_unit(deployment(runbook={"why": "x"})) == render_unit(deployment())
