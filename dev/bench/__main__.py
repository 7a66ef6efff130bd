"""`make bench`: runs the comparisons, prints a table, writes build/bench.json."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "dev"), str(ROOT / "agent")]

from bench import changing, cost, downtime, empty, nothing, scans, table, weights  # noqa: E402
from bench.fleet import Fleet  # noqa: E402
from bench.options import Options  # noqa: E402

# The longest come last: a run that is broken off has the others.
PARTS = {
    "empty": empty,
    "downtime": downtime,
    "scans": scans,
    "weights": weights,
    "cost": cost,
    "nothing": nothing,
    "changing": changing,
}


def main() -> int:
    """Exit status 1 where a limit is missed."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--only", type=_names, default=list(PARTS), metavar=",".join(PARTS))
    parser.add_argument("--runs", type=int, default=5, help="runs of which a median is taken")
    parser.add_argument("--hosts", type=_numbers, default=[1, 5, 20], help="sizes of fleets")
    parser.add_argument("--quick", action="store_true", help="see that it works: small, once")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench.json")
    said = parser.parse_args()
    # A shell's background job ignores it, and so do its children: the CLI, which ends its plugins
    # by it, then waits 5 s for each.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the hosts are stopped all the same
    options = Options(1 if said.quick else said.runs, said.hosts, said.quick)
    machine = table.machine()
    found = []
    print(table.heading())
    with Fleet() as fleet:
        for name in said.only:
            for comparison in PARTS[name].compare(fleet, options):
                found.append(comparison)
                print("\n".join(table.lines(comparison)), flush=True)
                # After each, so that a run that is broken off has not been in vain.
                table.keep(found, said.out, machine)
    return int(any(one.missed for one in found) and not options.quick)


def _names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := set(names) - set(PARTS):
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}")
    return names


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


if __name__ == "__main__":
    sys.exit(main())
