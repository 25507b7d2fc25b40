"""The text of a module: the same in all processes, valid, and linear in the program's length."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from pytensor_fuse._native.emission.module import emit_module
from pytensor_fuse._native.passes.fusion import fused
from pytensor_fuse._native.passes.placement import place_temporaries
from pytensor_fuse._native.passes.rewrite import rewritten
from pytensor_fuse._native.program.builder import Builder
from pytensor_fuse._native.program.interpret import interpret
from pytensor_fuse._native.program.model import Result
from pytensor_fuse._native.program.operations import MATHEMATICS, OPERATIONS
from pytensor_fuse._native.program.parse import parse_program
from pytensor_fuse._native.program.text import print_program
from pytensor_fuse._native.runtime.llvm import object_code
from support.effort import examples
from support.native.machine import MACHINES, call, compiled
from support.native.programs.nests import native_programs

TESTS = Path(__file__).parents[2]


def text_of(program, machine=MACHINES["512"], **more):
    """Return the text of a program's module; the program is not changed."""
    program = fused(rewritten(program))
    return emit_module(program, place_temporaries(program), machine, **more).text


@examples(0.5)
@given(native_programs())
def test_equal_programs_have_equal_texts(case):
    again = parse_program(print_program(case.program))
    for machine in MACHINES.values():
        text = text_of(case.program, machine)
        assert text == text_of(again, machine)
        # Literals of floats have more digits than addresses.
        assert not re.search(r"\b0x[0-9A-Fa-f]{6,12}\b", text)


def chain(n_loops, *, is_summed=True):
    """Return a program of loops, each of which needs the result of the previous one.

    Parameters
    ----------
    n_loops
        The number of loops.
    is_summed
        Whether each needs a sum over the whole result, so that no two can be fused.
    """
    b = Builder()
    x = b.given("input", 0, "f64", (None,))
    length = b.length(x, 0)
    before = x
    total = b.constant("f64", 0.0)
    for number in range(n_loops):
        with b.loop(length) as loop:
            value = b.op("exp" if number % 7 == 0 else "neg", b.load(before, (loop.index,)))
            value = b.op("add", value, total)
            before = b.buffer("temporary", 0, "f64", (length,))
            b.store(before, (loop.index,), value)
            if is_summed or number == n_loops - 1:
                total = b.reduce(loop, "add", b.constant("f64", -0.0), value)
    out = b.buffer("output", 0, "f64", ())
    b.allocate(out)
    b.program.results.append(Result("buffer", out))
    b.store(out, (), total)
    return b.program


def everything():
    """Return a program with all operations."""
    b = Builder()
    x = b.given("input", 0, "f64", (None,))
    length = b.length(x, 0)
    out = b.buffer("output", 0, "f64", (length,))
    b.allocate(out)
    b.program.results.append(Result("buffer", out))
    with b.loop(length) as loop:
        value = b.load(x, (loop.index,))
        for name in (*MATHEMATICS, "floordiv", "mod", "floor", "minimum", "abs"):
            value = b.op(name, *[value] * OPERATIONS[name].arity)
        b.store(out, (loop.index,), value)
    return b.program


CHILD = """
import sys
sys.path.insert(0, {tests!r})
from _native.emission.test_text import chain, everything, text_of
for uses_library in (False, True):
    print(text_of(everything(), uses_library=uses_library))
print(text_of(chain(30)))
"""


def test_texts_are_the_same_in_all_processes():
    texts = set()
    for seed in ("1", "4711"):
        ran = subprocess.run(
            [sys.executable, "-c", CHILD.format(tests=str(TESTS))],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        texts.add(ran.stdout)
    assert len(texts) == 1
    for uses_library in (False, True):
        object_code(text_of(everything(), uses_library=uses_library))


@pytest.mark.parametrize("factor", [2**62, -(2**63), 2**63 - 1])
def test_steps_that_wrap(factor):
    """Use steps for which some lanes exceed the range of integers."""
    b = Builder()
    out = b.buffer("output", 0, "i64", (b.index(19),))
    b.allocate(out)
    b.program.results.append(Result("buffer", out))
    with b.loop(b.index(19)) as loop:
        step = b.op("mul", loop.index, b.index(factor))
        step = b.op("sub", b.op("add", step, step), b.op("mul", step, b.index(5)))
        b.store(out, (loop.index,), b.op("xor", step, b.op("mul", loop.index, loop.index)))
    for machine in MACHINES.values():
        [got] = call(compiled(b.program, machine), [])
        np.testing.assert_array_equal(got, interpret(b.program, [])[0])


def least_seconds(work, given):
    """Return the CPU time of the fastest of three runs, in seconds."""
    best = float("inf")
    for _ in range(3):
        begin = time.process_time()
        work(given)
        best = min(best, time.process_time() - begin)
    return best


@pytest.mark.parametrize("is_summed", [False, True])
def test_time_is_linear(is_summed):
    """Compare a hundred loops with a thousand, with a large margin for other load."""

    def seconds(n_loops):
        return least_seconds(text_of, chain(n_loops, is_summed=is_summed))

    assert seconds(1000) < 25 * seconds(100)


def joined(n_vectors):
    """Return a program that writes vectors of unknown lengths one after the other."""
    b = Builder()
    vectors = [b.given("input", k, "f64", (None,)) for k in range(n_vectors)]
    starts = [b.index(0)]
    for vector in vectors:
        starts.append(b.op("add", starts[-1], b.length(vector, 0)))
    out = b.buffer("output", 0, "f64", (starts[-1],))
    b.allocate(out)
    b.program.results.append(Result("buffer", out))
    for vector, start in zip(vectors, starts, strict=False):
        with b.loop(b.length(vector, 0)) as loop:
            b.store(out, (b.op("add", start, loop.index),), b.load(vector, (loop.index,)))
    return b.program


def test_time_of_llvm_is_linear():
    """Compare 40 loops with distant operands with 160: with all in registers, the ratio is 40."""

    def seconds(n_vectors):
        return least_seconds(object_code, text_of(joined(n_vectors)))

    assert seconds(160) < 12 * seconds(40)
