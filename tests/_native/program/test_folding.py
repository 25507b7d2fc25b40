"""Folded operations have the same bits as operations that run."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytensor_fuse._native.program.arithmetic import NUMPY_DTYPES, evaluate
from pytensor_fuse._native.program.builder import Builder
from pytensor_fuse._native.program.folding import fold
from pytensor_fuse._native.program.model import DTYPES
from pytensor_fuse._native.program.operations import (
    INTEGERS,
    MATHEMATICS,
    OPERATIONS,
    result_dtype,
)
from support.native.dtypes import numbers_of

OPERATORS = [
    name for name in OPERATIONS if name not in MATHEMATICS and name not in ("select", "cast")
]


def assert_same_bits(one, other):
    assert one.dtype == other.dtype
    if one != one:
        assert other != other
    else:
        assert one == other
        assert np.signbit(one) == np.signbit(other) if one.dtype.kind == "f" else True


def assert_folds(builder, name, dtype, args, variables):
    """Compare a folded operation, if it folds, with the operation on all numbers of the variables.

    Returns
    -------
    bool
        Whether the operation folds.
    """
    folded = fold(builder, name, dtype, args)
    if folded is None:
        return False
    used = [value for value in variables if value in args]
    for numbers in product(*[variables[value] for value in used]):
        known = dict(zip(used, numbers, strict=True))
        scalars = {
            value: NUMPY_DTYPES[builder.dtype(value)](known.get(value, builder.number(value)))
            for value in {*args, folded}
        }
        expected = evaluate(name, dtype, [scalars[arg] for arg in args])
        assert_same_bits(scalars[folded], expected)
    return True


@pytest.mark.parametrize("dtype", DTYPES)
def test_operators_on_all_simple_numbers(dtype):
    builder = Builder()
    numbers = [NUMPY_DTYPES[dtype](number).item() for number in numbers_of(dtype)]
    variables = {
        builder.load(builder.given("input", place, dtype, ()), ()): numbers for place in (0, 1)
    }
    literals = [builder.constant(dtype, number) for number in numbers]
    folded = set()
    for name in OPERATORS:
        operation = OPERATIONS[name]
        if dtype not in operation.takes:
            continue
        gives = result_dtype(name, (dtype,))
        for args in product([*variables, *literals], repeat=operation.arity):
            if assert_folds(builder, name, gives, args, variables):
                folded.add(name)
    assert {"eq", "lt", "minimum"} <= folded


@pytest.mark.parametrize("dtype", DTYPES)
def test_casts_of_all_simple_numbers(dtype):
    builder = Builder()
    for number in numbers_of(dtype):
        literal = builder.constant(dtype, NUMPY_DTYPES[dtype](number).item())
        for to in DTYPES:
            if to != dtype:
                assert_folds(builder, "cast", to, (literal,), {})


def test_selections():
    builder = Builder()
    flag, one, two = [
        builder.load(builder.given("input", place, dtype, ()), ())
        for place, dtype in enumerate(("bool", "f64", "f64"))
    ]
    literals = [builder.constant("f64", number) for number in (0.0, -0.0, math.nan)]
    variables = {flag: [False, True], one: [0.0, -0.0, 3.0], two: [1.0, math.nan]}
    conditions = [flag, builder.constant("bool", True), builder.constant("bool", False)]
    n_folded = sum(
        assert_folds(builder, "select", "f64", args, variables)
        for args in product(conditions, [one, two, *literals], [one, two, *literals])
    )
    # All selections with a known condition, and those with equal sides.
    assert n_folded == 2 * 25 + 5


@pytest.mark.parametrize("name", ["add", "sub", "mul", "neg", "lt", "eq", "minimum"])
@given(one=st.floats(), other=st.floats())
def test_floats(name, one, other):
    builder = Builder()
    args = (builder.constant("f64", one), builder.constant("f64", other))[: OPERATIONS[name].arity]
    assert_folds(builder, name, result_dtype(name, ("f64",)), args, {})


@given(
    st.sampled_from([name for name in OPERATORS if "i64" in OPERATIONS[name].takes]),
    st.sampled_from(INTEGERS),
    st.integers(-(2**63), 2**64 - 1),
    st.integers(-(2**63), 2**64 - 1),
)
def test_integers(name, dtype, one, other):
    builder = Builder()
    args = [
        builder.constant(
            dtype, np.array(number % 2**64, np.uint64).astype(NUMPY_DTYPES[dtype]).item()
        )
        for number in (one, other)
    ]
    assert_folds(
        builder, name, result_dtype(name, (dtype,)), tuple(args[: OPERATIONS[name].arity]), {}
    )


@given(st.sampled_from(DTYPES), st.integers(-(2**63), 2**64 - 1) | st.floats())
def test_casts(to, number):
    builder = Builder()
    dtype = "f64" if isinstance(number, float) else "i64" if number < 2**63 else "u64"
    if to != dtype:
        assert_folds(builder, "cast", to, (builder.constant(dtype, number),), {})


def test_single_precision_is_rounded_before_it_is_compared():
    builder = Builder()
    tenth = builder.constant("f32", 0.1)
    assert builder.number(tenth) == float(np.float32(0.1))
    assert builder.number(builder.cast(tenth, "f64")) == float(np.float32(0.1))
    assert builder.constant("f32", float(np.float32(0.1))) == tenth
    assert builder.number(builder.constant("f32", 1e300)) == math.inf


@pytest.mark.parametrize(
    ("name", "dtype", "literal"),
    [
        ("add", "f64", 0.0),
        ("sub", "f64", -0.0),
        ("mul", "f64", 0.0),
        ("floordiv", "f64", 1.0),
    ],
)
def test_what_might_change_bits_stays(name, dtype, literal):
    builder = Builder()
    variable = builder.load(builder.given("input", 0, dtype, ()), ())
    assert fold(builder, name, dtype, (variable, builder.constant(dtype, literal))) is None
