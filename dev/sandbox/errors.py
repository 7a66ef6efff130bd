"""The one error that practice hosts raise."""


class SandboxError(Exception):
    """What is wrong with a practice host, in one sentence."""
