"""What the people on call read on the host: rendered from the catalogue, per host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cutover.fields import Paragraphs, Strict, setting
from cutover.templating import render

if TYPE_CHECKING:
    from cutover.deployment import Deployment


class Notes(Strict):
    """What a runbook says about a deployment beyond its fields."""

    why: Paragraphs = setting("Why it is served this way.", "text", "")
    measured: list[Paragraphs] = setting(
        "What was measured, each with when and how if that is known.", "a list of texts", []
    )
    notes: Paragraphs = setting("Anything else worth knowing at night.", "text", "")


def render_runbook(host: str, deployments: Sequence[Deployment]) -> str:
    """The runbook of one host, without what only the host knows: what serves, and its history."""
    return render("runbook.md.j2", host=host, deployments=deployments)
