"""Which fault can strike in which phase, and who serves afterwards."""

from __future__ import annotations

from dataclasses import dataclass

PHASES = (
    "stage",
    "drain",
    "release",
    "gate",
    "install",
    "start",
    "ready",
    "smoke",
    "commit",
    "roll-back",
)
CLIENT = ("client SIGKILL", "client SIGINT", "SSH session cut", "network silent")
HOST = ("power cut", "orderly reboot")
MODEL = {
    "new model crashes": ("ready", "smoke"),
    "new model crash-loops slowly": ("ready",),
    "new model hangs": ("ready", "smoke"),
    "new model answers wrongly": ("smoke",),
    "new model never gets ready": ("ready",),
    "new model is another": ("ready",),
}
REBOOT_IN_ROLL_BACK = "reboot while rolling back"
FAULTS = (
    *CLIENT,
    "agent SIGKILL",
    *HOST,
    REBOOT_IN_ROLL_BACK,
    "disk full",
    *MODEL,
    "a GPU disappears",
)

NO_MODEL = "the new model does not run, or is not asked, in this phase"
NO_FAILURE = "what fails in this phase is rolled back as from `ready`, where the row is real"
NO_READING = "no GPU is read any more in this phase"
REASONS = (NO_MODEL, NO_FAILURE, NO_READING)

NO_DRIVER = "dead end: a driver that no longer answers"


@dataclass(frozen=True)
class Row:
    """One cell of the matrix: what strikes when, and who serves in the end."""

    phase: str
    fault: str
    expected: str
    """``new`` or ``old`` model, or the dead end; a reason where the row cannot exist."""

    @property
    def real(self) -> bool:
        """Whether it can happen."""
        return self.expected not in REASONS

    @property
    def canary(self) -> bool:
        """Whether an unrelated process can outlive the fault: none outlives its host."""
        return self.fault not in (*HOST, REBOOT_IN_ROLL_BACK)

    @property
    def answered(self) -> bool:
        """Whether the client lives on, connected, and has to tell how it ended."""
        return self.canary and self.fault not in CLIENT

    @property
    def name(self) -> str:
        """For test ids and files."""
        return f"{self.phase}: {self.fault}"


def rows() -> list[Row]:
    """The whole matrix; any part of it, from the start, has something of many phases and faults."""
    lines = [[Row(phase, fault, expected(phase, fault)) for phase in PHASES] for fault in FAULTS]
    return [line[(turn + shift) % len(PHASES)] for turn in range(len(PHASES))
            for shift, line in enumerate(lines)]  # fmt: skip


def expected(phase: str, fault: str) -> str:
    """Who serves at the end of one row, or why there is none."""
    if fault in CLIENT:
        return "old" if phase == "roll-back" else "new"
    if fault == "agent SIGKILL":
        # A model that loads already, or serves, goes on under recovery.
        return "new" if phase in ("ready", "smoke", "commit") else "old"
    if fault in HOST:
        return "new" if phase == "commit" else "old"
    if fault == "disk full":
        return "old"
    if fault == REBOOT_IN_ROLL_BACK:
        return "old" if phase in ("ready", "smoke") else NO_FAILURE
    if fault == "a GPU disappears":
        if phase in ("smoke", "commit"):
            return NO_READING
        return "old" if phase == "stage" else NO_DRIVER
    return "old" if phase in MODEL[fault] else NO_MODEL


FAST = (
    ("ready", "agent SIGKILL"),
    ("gate", "power cut"),
    ("ready", "client SIGKILL"),
    ("release", "network silent"),
    ("smoke", "new model answers wrongly"),
    ("roll-back", "orderly reboot"),
)
"""What `make test` runs of it."""
