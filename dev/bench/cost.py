"""What a resource costs: the first preview and the unchanged `up`, by hosts and deployments."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator

from bench.comparison import OURS, Comparison, in_turn, seconds
from bench.fleet import ACTIVE, Fleet
from bench.options import Options
from tests.acceptance.stack import Stack

SIZES = ((1, 5), (1, 50), (5, 5), (20, 5), (20, 50))
"""Hosts and deployments; nothing is sent anywhere by these previews."""


def compare(fleet: Fleet, options: Options) -> Iterator[Comparison]:
    """Milliseconds a resource, start-up included: the larger a stack, the less of that."""
    for hosts, deployments in SIZES[:1] if options.quick else SIZES:
        stack = fleet.new_stack(f"cost{hosts}x{deployments}")
        grow(stack, deployments)
        stack.seconds = 600.0
        addresses = {f"box{n}": {"address": f"box{n}.invalid", "gpus": 8, "user": "root",
                                 "key_file": str(fleet.host("box1").key_path)}
                     for n in range(hosts)}  # fmt: skip
        stack.configure(active=ACTIVE, facts=False, parallel=True, hosts=addresses)
        found = re.search(r"(\d+) to create", stack.preview().text)
        assert found
        count = int(found[1])
        runs = min(options.runs, 3 if hosts * deployments < 100 else 1)
        figures = in_turn(runs, {OURS: lambda: 1000 * seconds(stack.preview) / count})  # noqa: B023
        name = f"preview of {count} new resources ({hosts} hosts, {deployments} deployments)"
        yield Comparison(name, "ms", figures)


def grow(stack: Stack, deployments: int) -> None:
    """Copies files of the catalogue until there are so many."""
    folder = stack.folder / "deployments"
    files = sorted(folder.glob("*.yaml"))
    for number in range(deployments - len(files)):
        source = files[number % len(files)]
        target = folder / f"copy-{number}-{source.name}"
        shutil.copy(source, target)
        text = target.read_text()
        target.write_text(text.replace("\nunit: ", f"\nunit: copy-{number}-"))
