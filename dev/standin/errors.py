"""What a user sees when a command did not work."""

from __future__ import annotations


class CommandError(Exception):
    """A command that could not be run or that failed; the text is what the user sees."""


def reason(error: OSError) -> str:
    """The system's reason, written as in Go."""
    return (error.strerror or str(error)).lower()
