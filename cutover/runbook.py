"""What the people on call read on the host: rendered from the catalogue, per host."""

from __future__ import annotations

from cutover.fields import Paragraphs, Strict, setting


class Notes(Strict):
    """What a runbook says about a deployment beyond its fields."""

    why: Paragraphs = setting("Why it is served this way.", "text", "")
    measured: list[Paragraphs] = setting(
        "What was measured, each with when and how if that is known.", "a list of texts", []
    )
    notes: Paragraphs = setting("Anything else worth knowing at night.", "text", "")
