"""Privatization keeps the results of scattered additions, to the bit if no sum is rounded."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytensor_fuse._native.passes import privatization
from pytensor_fuse._native.passes.fusion import fused
from pytensor_fuse._native.passes.privatization import privatized
from pytensor_fuse._native.passes.rewrite import rewritten
from pytensor_fuse._native.program.arithmetic import NUMPY_DTYPES
from pytensor_fuse._native.program.builder import Builder
from pytensor_fuse._native.program.model import Result
from pytensor_fuse._native.program.text import print_program
from pytensor_fuse._native.program.verify import verify
from support.effort import IS_DEEP, examples
from support.native.machine import MACHINES, compiled, run_code
from support.native.outcomes import Case, assert_same_outcome, run
from support.native.programs.nests import native_programs

DEEP = settings(max_examples=100_000)

DTYPES = ("f64", "f32", "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8")


def with_copies(program, least_share=0):
    """Privatize all loops, or only loops with a least number of rows per element."""
    with (
        mock.patch.object(privatization, "_LEAST_EXTENT", 0),
        mock.patch.object(privatization, "_LEAST_SHARE", least_share),
    ):
        return privatized(program)


@DEEP if IS_DEEP else examples(5)
@given(native_programs(longest=9, most_nests=7), st.booleans())
def test_all_programs(case, is_fused):
    before = run(case)
    program = fused(case.program) if is_fused else case.program
    text = print_program(program)
    after = with_copies(program)
    verify(after)
    assert print_program(program) == text
    assert_same_outcome(before, run(case, after))


@st.composite
def sums_by_group(draw):
    """Draw a program that adds rows to one or two arrays, at indices of one group or several."""
    b = Builder(reassociates=True)
    # Up to several times the number of copies, 8, which is also the most lanes of a vector.
    n_rows, ndim, is_known = draw(st.integers(0, 30)), draw(st.integers(1, 2)), draw(st.booleans())
    n_groups = draw(st.integers(1, 4))
    inputs = []

    def given_array(array, dtype, *, known=is_known):
        shape = array.shape if known else [None] * array.ndim
        inputs.append(array.astype(NUMPY_DTYPES[dtype]))
        return b.given("input", len(inputs) - 1, dtype, shape)

    numbers = st.lists(st.integers(0, n_groups - 1), min_size=n_rows, max_size=n_rows)
    groups = given_array(np.array(draw(numbers), int), draw(st.sampled_from(("i64", "i32", "u8"))))
    extent = b.program.buffers[groups].lengths[0]
    targets, terms = [], []
    for _ in range(draw(st.integers(1, 2))):
        dtype = draw(st.sampled_from(DTYPES))
        small = st.lists(st.integers(0, 9), min_size=n_rows, max_size=n_rows)
        terms.append(given_array(np.array(draw(small), int), dtype, known=True))
        old = np.arange(n_groups**ndim).reshape((n_groups,) * ndim)
        targets.append(given_array(old, dtype, known=is_known and draw(st.booleans())))
        b.program.buffers[targets[-1]].is_once = False
    b.program.results += [Result("input", b.program.buffers[one].position) for one in targets]
    with b.loop(extent) as row:
        at = b.cast(b.load(groups, [row.index]), "i64")
        for target, term in zip(targets, terms, strict=True):
            value = b.load(term, [row.index], is_guarded=True)
            b.store(target, [at] * ndim, value, "add", is_guarded=True)
    return Case(b.program, inputs, [])


@pytest.mark.parametrize("machine", MACHINES)
@DEEP if IS_DEEP else examples(2)
@given(case=sums_by_group(), least_share=st.integers(0, 4), at_end=st.booleans())
def test_machine_code(machine, case, least_share, at_end):
    before = run(case)
    program = with_copies(rewritten(case.program), least_share)
    verify(program)
    assert_same_outcome(before, run(case, program))
    function = compiled(program, MACHINES[machine])

    def by(_, inputs, constants):
        return run_code(function, inputs, constants, at_end=at_end)

    assert_same_outcome(before, run(case, by=by))
