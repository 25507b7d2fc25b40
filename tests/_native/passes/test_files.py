"""Golden files of passes: programs, each with its expected result.

A line ``# fused``, or another key of `PASSES`, before a program names the pass; ``# becomes``
precedes the text of the result. ``PYTENSOR_FUSE_UPDATE=1`` regenerates the results.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytensor_fuse._native.passes.fusion import fused
from pytensor_fuse._native.passes.placement import place_temporaries
from pytensor_fuse._native.passes.privatization import privatized
from pytensor_fuse._native.passes.rewrite import rewritten
from pytensor_fuse._native.program.model import Program
from pytensor_fuse._native.program.parse import parse_program
from pytensor_fuse._native.program.text import print_program
from pytensor_fuse._native.program.verify import verify

FILES = sorted((Path(__file__).parent / "files").glob("*.txt"))
IS_UPDATE = os.environ.get("PYTENSOR_FUSE_UPDATE") == "1"


def placed(program: Program) -> Program:
    """Place temporaries in a copy."""
    again = parse_program(print_program(program))
    place_temporaries(again)
    return again


def twice(program: Program) -> Program:
    """Fuse loops, and then fuse the result again."""
    return fused(fused(program))


PASSES = {
    "# fused": fused,
    "# fused twice": twice,
    "# rewritten": rewritten,
    "# privatized": privatized,
    "# placed": placed,
}


def parts(file: Path) -> list[list[str]]:
    """Return the lines of a file, split before each pass."""
    found: list[list[str]] = [[]]
    for line in file.read_text().splitlines():
        if line in PASSES:
            found.append([])
        found[-1].append(line)
    return found


def programs():
    for file in FILES:
        for number, lines in enumerate(parts(file)[1:]):
            yield pytest.param(file, number, lines, id=f"{file.stem}-{number}")


@pytest.mark.parametrize(("file", "number", "lines"), list(programs()))
def test_programs(file, number, lines):
    at = lines.index("# becomes")
    program = parse_program("\n".join(lines[1:at]))
    verify(program)
    after = PASSES[lines[0]](program)
    verify(after)
    text = print_program(after)
    if IS_UPDATE:
        update(file, number, text)
    else:
        assert text == print_program(parse_program("\n".join(lines[at:])))
    if lines[0] != "# placed":
        # Passes leave nothing for a second rewrite: rewriting is idempotent.
        assert print_program(rewritten(after)) == print_program(rewritten(rewritten(after)))


def update(file: Path, number: int, text: str) -> None:
    """Write a result into its file; a trailing comment belongs to the next program."""
    all_parts = parts(file)
    lines = all_parts[number + 1]
    at = lines.index("# becomes")
    tail: list[str] = []
    for line in reversed(lines[at + 1 :]):
        if line and not line.startswith("#"):
            break
        tail.insert(0, line)
    all_parts[number + 1] = [*lines[: at + 1], *text.rstrip("\n").splitlines(), *tail]
    file.write_text("\n".join(["\n".join(part) for part in all_parts]) + "\n")
