"""Nothing to do, hosts not asked: beside a Pulumi program with nothing in it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

from bench.comparison import OURS, Comparison, in_turn, seconds
from bench.fleet import Fleet
from bench.options import Options

AT_MOST = 1.6


def compare(fleet: Fleet, options: Options) -> Iterator[Comparison]:
    """Both on the same CLI, with the same state backend and the same Python packages."""
    stack = fleet.stack(1)
    stack.configure(facts=False)
    empty = fleet.folder / "empty"
    (empty / "state").mkdir(parents=True)
    (empty / "Pulumi.yaml").write_text("name: empty\nruntime: python\n")
    (empty / "__main__.py").write_text("import pulumi\n")
    env = {**os.environ, **stack.env, "PULUMI_BACKEND_URL": f"file://{empty}/state"}

    def pulumi(*words: str) -> None:
        subprocess.run(["pulumi", *words], cwd=empty, env=env, check=True, capture_output=True)

    up = ("up", "--yes", "--skip-preview", "--non-interactive", "--stack", "test")
    pulumi("stack", "init", "test")
    pulumi(*up)
    ways = {
        OURS: lambda: seconds(stack.up),
        "empty program": lambda: seconds(lambda: pulumi(*up)),
    }
    figures = in_turn(options.runs, ways)
    stack.configure(facts=True)
    yield Comparison(
        "nothing to do, facts off, 1 host, up --skip-preview",
        "s",
        figures,
        limits={"empty program": AT_MOST},
    )
