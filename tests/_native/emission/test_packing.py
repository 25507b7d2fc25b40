"""Packed constants: a loop reads them from one array only."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytensor_fuse._native.emission.packing import packed_constants
from pytensor_fuse._native.passes.fusion import fused
from pytensor_fuse._native.passes.rewrite import rewritten
from pytensor_fuse._native.program.builder import Builder
from pytensor_fuse._native.program.interpret import interpret
from pytensor_fuse._native.program.model import Result
from pytensor_fuse._native.runtime.constants import laid_out
from support.effort import examples
from support.native.machine import MACHINES, compiled, run_code
from support.switching import switched

DTYPES = {"f64": "float64", "f32": "float32", "i64": "int64"}


def sums_of_columns(dtypes, n_rows, elsewhere=()):
    """Return a program that adds up constants row by row; some are read backwards as well.

    Parameters
    ----------
    dtypes
        The dtypes of the constants.
    n_rows
        The length of each constant.
    elsewhere
        The numbers of the constants that are also read backwards.
    """
    b = Builder()
    length, last = b.index(n_rows), b.index(n_rows - 1)
    columns = [b.given("constant", k, dtype, (n_rows,)) for k, dtype in enumerate(dtypes)]
    out = b.buffer("output", 0, "f64", (length,))
    b.allocate(out)
    b.program.results.append(Result("buffer", out))
    with b.loop(length) as loop:
        total = b.constant("f64", 0.5)
        for number, column in enumerate(columns):
            total = b.op("add", total, b.cast(b.load(column, (loop.index,)), "f64"))
            if number in elsewhere:
                there = b.op("sub", last, loop.index)
                total = b.op("mul", total, b.cast(b.load(column, (there,)), "f64"))
        b.store(out, (loop.index,), total)
    return b.program


def columns_of(dtypes, n_rows):
    rng = np.random.default_rng(n_rows)
    return [rng.integers(-9, 9, n_rows).astype(DTYPES[dtype]) for dtype in dtypes]


@pytest.mark.parametrize("machine", MACHINES)
@examples(0.3)
@given(
    dtypes=st.lists(st.sampled_from(["f64", "f64", "f32", "i64"]), min_size=1, max_size=30),
    n_rows=st.integers(0, 40),
    elsewhere=st.sets(st.integers(0, 29), max_size=3),
    at_end=st.booleans(),
)
def test_columns(machine, dtypes, n_rows, elsewhere, at_end):
    program = sums_of_columns(dtypes, n_rows, elsewhere)
    columns = columns_of(dtypes, n_rows)
    expected = interpret(program, [], columns)
    function = compiled(program, MACHINES[machine], packs=True)
    constants = laid_out(columns, function.packing, range(len(columns)))
    (found,) = run_code(function, [], constants, at_end=at_end)
    np.testing.assert_array_equal(found, expected[0])


def packs(program, machine="512"):
    return packed_constants(rewritten(fused(program)), MACHINES[machine]).packs


def test_which_are_packed():
    many = ["f64"] * 8
    assert packs(sums_of_columns(many, 20)) == (tuple(range(8)),)
    assert packs(sums_of_columns(many, 20), "256") == (tuple(range(8)),)
    # A scalar remainder loop would need the original layout.
    assert packs(sums_of_columns(many, 21), "128") == ()
    assert packs(sums_of_columns(many, 20), "128") == (tuple(range(8)),)
    assert packs(sums_of_columns(many, 20), "scalar") == ()
    # A few streams need no packing, because processors prefetch them.
    assert packs(sums_of_columns(many[1:], 20)) == ()
    # Constants that are read in two ways, or may be indices, are not packed.
    assert packs(sums_of_columns(many, 20, {3})) == ()
    assert packs(sums_of_columns([*many, "f64"], 20, {3})) == ((0, 1, 2, 4, 5, 6, 7, 8),)
    assert packs(sums_of_columns(["i64"] * 8, 20)) == ()
    # Each dtype has a pack of its own.
    both = sums_of_columns(["f64", "f32"] * 8, 20)
    assert packs(both) == (tuple(range(0, 16, 2)), tuple(range(1, 16, 2)))


def test_a_pack():
    program = rewritten(fused(sums_of_columns(["f32"] * 8, 5)))
    packing = packed_constants(program, MACHINES["256"])
    columns = [np.arange(5, dtype="float32") + 10 * k for k in range(8)]
    pack, *others = laid_out(columns, packing, range(len(columns)))
    assert pack.shape == (2, 8, 4)
    for number, column in enumerate(columns):
        np.testing.assert_array_equal(pack[:, number].ravel(), [*column, *[column[-1]] * 3])
    assert [other.size for other in others] == [0] * 7


@pytest.mark.parametrize("n_rows", [1, 16, 100])
def test_a_regression_of_many_columns(n_rows):
    rng = np.random.default_rng(1)
    columns = rng.normal(size=(12, n_rows))
    betas = [pt.dscalar(f"b{k}") for k in range(12)]
    eta = sum(b * pt.constant(column) for b, column in zip(betas, columns, strict=True))
    y = pt.constant(rng.normal(size=n_rows))
    loss = ((y - eta) ** 2).sum()
    outputs = [loss, *pytensor.grad(loss, betas)]
    values = rng.normal(size=12)
    found = []
    for is_on in (True, False):
        with switched(native=is_on, cache=False):
            function = pytensor.function(betas, outputs, mode="NUMBA")
            if is_on:
                # The jitted function reads the same arrays.
                found.append(function.vm.jit_fn(*[np.asarray(value) for value in values]))
            found.append(function(*values))
    for one in found[1:]:
        np.testing.assert_allclose(found[0], one, rtol=1e-9)
