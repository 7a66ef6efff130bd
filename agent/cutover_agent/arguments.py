"""Command lines of engines: two that differ in the order of their options alone are the same."""

from __future__ import annotations

import re
from collections.abc import Sequence


def grouped(argv: Sequence[str]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The program, and each option with its values; `--a=b` is taken apart.

    A word that begins with a dash and a digit is a value; `-m` behind an interpreter is a part of
    the program.
    """
    program: list[str] = []
    options: list[list[str]] = []
    for position, word in enumerate(argv):
        if word.startswith("--") or (position > 1 and re.match("-[A-Za-z]", word)):
            name, equals, value = word.partition("=")
            options.append([name, value] if equals else [name])
        else:
            (options[-1] if options else program).append(word)
    return tuple(program), [tuple(option) for option in options]


def command_difference(ours: Sequence[str], theirs: Sequence[str]) -> str:
    """What a running command has otherwise than the declared one; empty where they are alike."""
    program, options = grouped(ours)
    its_program, its_options = grouped(theirs)
    if program != its_program:
        return f"{' '.join(its_program)}, declared {' '.join(program)}"
    # Stable: of an option that is given twice the last one counts, so those keep their order.
    mine = sorted(options, key=lambda option: option[0])
    other = sorted(its_options, key=lambda option: option[0])
    missing = [option for option in mine if option not in other]
    extra = [option for option in other if option not in mine]
    if missing or extra:
        told = [*(f"{' '.join(o)} is missing" for o in missing)]
        return ", ".join([*told, *(f"{' '.join(o)} is not declared" for o in extra)])
    return "" if mine == other else "an option is given twice in another order"
