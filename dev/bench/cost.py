"""What a resource costs: previews of new ones, and an `up` with nothing to do, by their number."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

from bench.comparison import OURS, Comparison, in_turn, seconds
from bench.fleet import ACTIVE, Fleet
from bench.modes import on
from bench.options import Options
from tests.acceptance.stack import Stack, settings

SIZES = ((1, 5), (1, 20), (1, 50), (5, 5), (20, 5), (5, 50))
"""Hosts and deployments; nothing is sent anywhere by these previews."""
WIDE = 50
"""Deployments of one host that are really there."""
LARGE = 500
"""Resources of which a preview takes so long that it runs once."""
LIMIT_SECONDS = 900.0


def compare(fleet: Fleet, options: Options) -> Iterator[Comparison]:
    """Seconds by number of resources, hosts not asked, and what each adds."""
    previews: list[tuple[int, float]] = []
    for hosts, deployments in SIZES[:2] if options.quick else SIZES:
        stack = on_paper(fleet, hosts, deployments)
        took, count = preview(stack)
        more = 0 if count > LARGE else options.runs - 1
        figures = {OURS: [took, *(preview(stack)[0] for _ in range(more))]}
        size = f"{on(hosts)}, {deployments} deployments: {count} resources"
        yield (found := Comparison(f"preview, {size}", "s", figures))
        previews.append((count, found.medians[OURS]))
    yield each("each new resource adds to a preview", previews)
    if not options.quick:
        few, many = fleet.stack(1), wide(fleet)
        few.configure(facts=False)
        unchanged: list[tuple[int, float]] = []
        for stack, deployments in ((few, 5), (many, WIDE)):
            count = len(stack.resources())
            figures = in_turn(options.runs, {OURS: lambda: seconds(stack.up)})  # noqa: B023
            size = f"{on(1)}, {deployments} deployments: {count} resources"
            yield (found := Comparison(f"nothing to do, facts off, {size}", "s", figures))
            unchanged.append((count, found.medians[OURS]))
        yield each("each resource adds to an `up` with nothing to do", unchanged)


def each(name: str, medians: list[tuple[int, float]]) -> Comparison:
    """Milliseconds a resource, from the smallest stack to the largest: without the start-up."""
    (few, quick), (many, slow) = min(medians), max(medians)
    return Comparison(name, "ms", {OURS: [1000 * (slow - quick) / (many - few)]})


def preview(stack: Stack) -> tuple[float, int]:
    """Seconds that it took, and how many resources it says it would create."""
    began = time.monotonic()
    text = stack.preview().text
    took = time.monotonic() - began
    found = re.search(r"(\d+) to create", text)
    assert found, text
    return took, int(found[1])


def on_paper(fleet: Fleet, hosts: int, deployments: int) -> Stack:
    """A stack whose hosts do not exist."""
    stack = grown(fleet, f"cost{hosts}x{deployments}", deployments)
    box = {"gpus": 8, "key_file": str(fleet.host("box1").key_path)}
    boxes = {f"box{n}": {**box, "address": f"box{n}.invalid"} for n in range(hosts)}
    stack.configure(active=ACTIVE, facts=False, parallel=True, hosts=boxes)
    return stack


def wide(fleet: Fleet) -> Stack:
    """A stack of one host with many deployments, up."""
    stack = grown(fleet, "wide", WIDE)
    host = fleet.host("wide")
    stack.configure(active=ACTIVE, facts=False, hosts={"wide": settings(host)})
    stack.up()
    return stack


def grown(fleet: Fleet, name: str, deployments: int) -> Stack:
    """A stack with so many deployments: copies of the catalogue's files."""
    stack = fleet.new_stack(name)
    stack.seconds = LIMIT_SECONDS
    files = sorted((stack.folder / "deployments").glob("*.yaml"))
    for number in range(deployments - len(files)):
        source = files[number % len(files)]
        text = source.read_text().replace("\nunit: ", f"\nunit: copy-{number}-")
        (source.parent / f"copy-{number}-{source.name}").write_text(text)
    return stack
