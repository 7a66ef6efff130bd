"""What the practice model says, and how many tokens that takes."""

from __future__ import annotations

from dataclasses import dataclass

THOUGHT = ["The", "user", "asks", "for", "the", "capital", "of", "France.", "It", "is", "Paris."]
FILLER = ["the", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog", "and", "then"]
LONGEST = 512


@dataclass(frozen=True)
class Answer:
    """Text in tokens: one token is one word."""

    reasoning: list[str]
    content: list[str]
    cut: bool

    @property
    def tokens(self) -> int:
        """What usage counts."""
        return len(self.reasoning) + len(self.content)


def answer(question: str, most: int | None, reasons: bool, instead: str | None) -> Answer:
    """Answer within `most` tokens; a reasoning model thinks first, and may get no further."""
    most = LONGEST if most is None else most
    if instead is not None:
        words = instead.split()
    elif "capital of france" in question.lower():
        words = ["Paris"]
    else:
        words = [FILLER[i % len(FILLER)] for i in range(most)]
    thought = THOUGHT if reasons else []
    whole = len(thought) + len(words)
    return Answer(thought[:most], words[: max(0, most - len(thought))], whole > most)
