"""Where things are: what belongs to this checkout, and what all checkouts share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Places:
    """The folders of the tool chain."""

    project: Path
    cache: Path
    """Shared by all checkouts; what is built goes here and survives."""

    @property
    def venv(self) -> Path:
        """The Python environment of this checkout."""
        return self.project / ".venv"

    @property
    def rivals(self) -> Path:
        """The environment of what `make bench` compares with, apart from the program's own."""
        return self.project / ".local" / "rivals"

    @property
    def pulumi_home(self) -> Path:
        """PULUMI_HOME of this checkout, apart from a person's own ~/.pulumi."""
        return self.project / ".local" / "pulumi"

    @property
    def state(self) -> Path:
        """Where the sandbox stack keeps its Pulumi state."""
        return self.project / ".local" / "state"

    @property
    def standin(self) -> Path:
        """The stand-in for the pulumi-command plugin."""
        return self.project / "dev" / "standin" / "pulumi-resource-command"

    def own(self, path: Path) -> bool:
        """Say whether `path` belongs to the tool chain, and not to the machine."""
        return path.is_relative_to(self.project) or path.is_relative_to(self.cache)


def places(project: Path, env: Mapping[str, str]) -> Places:
    """Find the folders for the checkout in `project`, from the environment's wishes."""
    home_cache = Path(env.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Places(project, Path(env.get("CUTOVER_CACHE") or home_cache / "cutover"))
