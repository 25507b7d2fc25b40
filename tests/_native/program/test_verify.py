"""Each rule has a file of programs that break it, annotated on the offending line.

The files lie by what the rule is about: `buffers`, `values` or `statements`.
"""

from pathlib import Path

import pytest

from pytensor_fuse._native.program.model import Buffer, Failure, Program, Result, Store
from pytensor_fuse._native.program.parse import parse_program
from pytensor_fuse._native.program.verify import ProgramError, verify

FILES = sorted((Path(__file__).parent / "files").rglob("*.txt"), key=lambda file: file.stem)
MARK = "  # error: "


def programs():
    for file in FILES:
        lines = file.read_text().splitlines()
        starts = [number for number, line in enumerate(lines) if line.startswith("program")]
        for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
            marked = [line for line in lines[start:end] if MARK in line]
            yield pytest.param(
                file.stem.replace("_", " "),
                "\n".join(lines[start:end]),
                marked,
                id=f"{file.stem}-{start + 1}",
            )


@pytest.mark.parametrize(("rule", "text", "marked"), list(programs()))
def test_rule(rule, text, marked):
    program = parse_program(text)
    if not marked:
        verify(program)
        return
    [line] = marked
    statement, _, expected = line.partition(MARK)
    with pytest.raises(ProgramError) as caught:
        verify(program)
    assert str(caught.value) == f"{expected} (rule: {rule})"
    # The value or buffer that the message names is on the line.
    name = expected.split()[0]
    assert name[0] not in "%@" or name in statement or rule == "dense ids"


def with_value(dtype, number):
    program = Program()
    program.dtypes = [dtype]
    program.constants = {0: number}
    return program


# Faults that the text format cannot express.


@pytest.mark.parametrize(
    ("dtype", "number"), [("i64", True), ("bool", 1), ("f64", 1), ("i64", 1.0)]
)
def test_literals_are_of_their_types(dtype, number):
    with pytest.raises(ProgramError, match=rf"%0 is {number}, which is no {dtype} \(rule: lit"):
        verify(with_value(dtype, number))


def test_dtypes_are_known():
    with pytest.raises(ProgramError, match=r"%0 is of dtype 'f16', which does not exist"):
        verify(with_value("f16", 1.0))
    program = Program()
    program.buffers = [Buffer("input", 0, "c128", ())]
    with pytest.raises(ProgramError, match=r"@0 is of dtype 'c128', which does not exist"):
        verify(program)


def test_values_are_ids():
    program = with_value("i64", 1)
    program.constants[1] = 2
    with pytest.raises(ProgramError, match=r"%1 is beyond the last value \(rule: dense ids\)"):
        verify(program)
    program = with_value("i64", 1)
    program.lengths[1] = (0, 0)
    with pytest.raises(ProgramError, match=r"%1 is beyond the last value \(rule: dense ids\)"):
        verify(program)


def test_kinds_are_known():
    program = Program()
    program.buffers = [Buffer("register", 0, "f64", ())]
    with pytest.raises(ProgramError, match="@0 is of kind 'register', which does not exist"):
        verify(program)
    program = Program()
    program.results = [Result("constant", 0)]
    with pytest.raises(ProgramError, match="result 0 is of kind 'constant', which does not exist"):
        verify(program)


def test_failures_raise():
    program = Program()
    program.failures = [Failure(int, "no")]
    with pytest.raises(ProgramError, match=r"failure 0 raises no exception \(rule: failures\)"):
        verify(program)


def test_combiners_are_known():
    program = with_value("f64", 1.0)
    program.buffers = [Buffer("temporary", 0, "f64", (), is_once=False)]
    program.body = [Store(0, (), 0, "sub")]
    with pytest.raises(ProgramError, match=r"@0 combines f64 by 'sub' \(rule: combiners\)"):
        verify(program)
