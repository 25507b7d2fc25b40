"""Sums of many terms: with several accumulators, and block by block."""

from __future__ import annotations

import math
from unittest import mock

import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_fuse._native.emission import vectors
from pytensor_fuse._native.program.builder import Builder
from pytensor_fuse._native.program.model import Result
from support.native.functions import native_function
from support.native.machine import MACHINES, compiled, run_code
from support.native.outcomes import Case, assert_same_outcome, run

LENGTHS = (0, 1, 7, 8, 31, 32, 33, 63, 64, 65, 127, 128, 129, 191, 192, 200, 257, 1000)


def reductions(length, *, is_known, is_long):
    """Return a program whose sums are exact: terms are small integers, or multiples of 1/2."""
    b = Builder(reassociates=True)
    x = b.given("input", 0, "f64", (length if is_known else None,))
    y = b.given("input", 1, "f32", (length if is_known else None,))
    outs = []
    with b.loop(b.program.buffers[x].lengths[0]) as loop:
        one = b.load(x, [loop.index])
        other = b.load(y, [loop.index], is_guarded=True)
        if is_long:
            # A loop whose body takes longer than a sum has a single accumulator.
            one = b.op("mul", one, b.op("exp", b.constant("f64", 0.0)))
            one = b.op("div", one, b.op("exp", b.op("mul", one, b.constant("f64", 0.0))))
        terms = [
            ("add", "f64", 3.0, one),
            ("maximum", "f64", -math.inf, one),
            ("minimum", "f64", math.inf, b.op("neg", one)),
            ("add", "f32", 0.0, other),
            ("and", "bool", True, b.op("lt", one, b.constant("f64", 9.0))),
        ]
        for combiner, dtype, initial, term in terms:
            outs.append(b.reduce(loop, combiner, b.constant(dtype, initial), term))
    for number, value in enumerate(outs):
        buffer = b.buffer("output", number, b.dtype(value), ())
        b.allocate(buffer)
        b.store(buffer, (), value)
        b.program.results.append(Result("buffer", buffer))
    rng = np.random.default_rng(length)
    values = rng.integers(-9, 9, size=length)
    return Case(b.program, [values.astype(float), (values / 2).astype("float32")], [])


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("is_long", [True, False])
def test_sums_of_all_lengths(machine, is_known, is_long):
    with mock.patch.object(vectors, "_BLOCK", 64):
        for length in LENGTHS if is_known else LENGTHS[:1]:
            case = reductions(length, is_known=is_known, is_long=is_long)
            function = compiled(case.program, MACHINES[machine], uses_library=True)
            if is_known:
                cases = [case]
            else:
                cases = [
                    reductions(one, is_known=False, is_long=is_long)._replace(program=case.program)
                    for one in LENGTHS
                ]
            for each in cases:

                def by(_, inputs, constants, function=function):
                    return run_code(function, inputs, constants)

                assert_same_outcome(run(each), run(each, by=by))


@pytest.mark.parametrize("shape", [None, 1_000_000])
def test_the_error_does_not_grow_with_the_length(shape):
    rng = np.random.default_rng(3)
    x = pt.tensor("x", dtype="float64", shape=(shape,))
    function = native_function([x], [x.sum(), (x * pt.exp(-x)).sum()])
    values = rng.uniform(0.1, 1.0, size=1_000_000)
    found = function(values)
    for one, again in zip(found, function(values), strict=True):
        assert one.tobytes() == again.tobytes()
    for one, terms in zip(found, (values, values * np.exp(-values)), strict=True):
        exact = math.fsum(terms)
        # A plain sum with eight accumulators has an error of some 1e-13.
        assert abs(one - exact) <= 4e-15 * exact
