"""The option check: names that an engine's release knows, and what was probably meant.

A release is three text files in `engines_data/`, one name a line, called `<engine>-<release>-` and
then `flags.txt`, `reasoning-parsers.txt` or `tool-call-parsers.txt`. Adding the files adds it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cutover.deployment import Deployment

DATA = Path(__file__).parent / "engines_data"
_PARSERS = {"tool_call": "tool-call-parsers", "reasoning": "reasoning-parsers"}

Fault = tuple[tuple[str, ...], str]


def releases(engine: str) -> list[str]:
    """The releases of an engine whose names are known here."""
    found = (path.name for path in DATA.glob(f"{engine}-*-flags.txt"))
    return sorted(name.removeprefix(f"{engine}-").removesuffix("-flags.txt") for name in found)


def misspelt(one: Deployment) -> Iterator[Fault]:
    """Names that the deployment's stated release does not know; none where it is not known."""
    if one.engine_version in releases(one.engine):
        yield from _unknown(one, [one.engine_version])


def doubtful(one: Deployment) -> Iterator[Fault]:
    """Names that no known release has, of a deployment that states none of these."""
    known = releases(one.engine)
    if known and one.engine_version not in known:
        yield from _unknown(one, known)


def _unknown(one: Deployment, among: list[str]) -> Iterator[Fault]:
    options = _names(one.engine, among, "flags")
    told = f"is no option of {one.engine} {' or '.join(among)}"
    for name in one.args:
        base = name.partition(".")[0]
        if f"--{base}" not in options and f"--{base.removeprefix('no-')}" not in options:
            yield ("args", name), f"{told}{_similar(f'--{name}', options)}"
    for field, kind in _PARSERS.items():
        name = getattr(one.parsers, field)
        parsers = _names(one.engine, among, kind)
        if name and parsers and name not in parsers:
            yield (
                ("parsers", field),
                f"{name} is no parser of {one.engine} {' or '.join(among)}"
                f"{_similar(name, parsers)}",
            )


def _similar(name: str, names: frozenset[str]) -> str:
    import difflib  # only when something is wrong

    found = difflib.get_close_matches(name, sorted(names), n=1)
    return f": did you mean {found[0].removeprefix('--')}?" if found else ": correct it"


def _names(engine: str, among: list[str], kind: str) -> frozenset[str]:
    return frozenset[str]().union(*(_read(engine, release, kind) for release in among))


@cache
def _read(engine: str, release: str, kind: str) -> frozenset[str]:
    path = DATA / f"{engine}-{release}-{kind}.txt"
    return frozenset(path.read_text(encoding="utf-8").split() if path.exists() else ())
