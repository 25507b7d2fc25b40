"""Every operation on every dtype, in vectors, in their tails and as scalars, against NumPy."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest

from pytensor_fuse._native.program.arithmetic import NUMPY_DTYPES, cast_scalar, evaluate
from pytensor_fuse._native.program.builder import Builder
from pytensor_fuse._native.program.model import Result
from pytensor_fuse._native.program.operations import (
    ALL,
    FLOATS,
    FORMS,
    INTEGERS,
    MATHEMATICS,
    OPERATIONS,
    SIGNED,
)
from support.native.machine import MACHINES, call, compiled
from support.native.outcomes import Outcome, assert_same_outcome

LENGTHS = (0, 1, 3, 7, 8, 9, 17)
EXACT = [name for name in OPERATIONS if name not in (*MATHEMATICS, *FORMS, "cast")]


def specials(dtype):
    """Return numbers of a dtype that are edge cases of operations."""
    of = NUMPY_DTYPES[dtype]
    if dtype == "bool":
        return np.array([False, True])
    if dtype in FLOATS:
        info = np.finfo(of)
        positive = [0, 0.5, 1, 1.5, 2.5, 3, 7, 1e10, info.tiny, info.smallest_subnormal, info.max]
        positive += [info.eps, np.inf, np.nextafter(of(0.5), of(0)), 1 / info.eps]
        return np.array([sign * of(one) for one in positive for sign in (1, -1)] + [np.nan], of)
    info = np.iinfo(of)
    near = [0, 1, 2, 3, 7, 8, 100, info.bits - 1, info.bits, info.bits + 1, info.max, info.max - 1]
    negative = [-1, -2, -3, -7, -info.bits, info.min, info.min + 1] if dtype in SIGNED else []
    return np.array(near + negative, of)


def limits(dtype):
    """Return floats around the ends of the integer dtypes."""
    of = NUMPY_DTYPES[dtype]
    around = []
    for bits in (7, 8, 15, 16, 31, 32, 63, 64):
        end = of(2.0**bits)
        around += [end, np.nextafter(end, of(0)), np.nextafter(end, of(np.inf)), end - of(0.5)]
        around += [end + of(0.5), end + of(1), end - of(1)]
    around += [of(1e30), of(0.9), of(1e300 if dtype == "f64" else 1e38)]
    return np.array([sign * one for one in around for sign in (1, -1)], of)


def over_columns(columns, write):
    """Return a program that writes outputs element by element from inputs of one length."""
    b = Builder()
    inputs = [b.given("input", k, dtype, (None,)) for k, dtype in enumerate(columns)]
    length = b.length(inputs[0], 0)
    with b.loop(length) as loop:
        values = [b.load(one, (loop.index,)) for one in inputs]
        for value in write(b, values):
            number = len(b.program.results)
            out = b.buffer("output", number, b.dtype(value), (length,))
            b.program.results.append(Result("buffer", out))
            b.store(out, (loop.index,), value)
    for one in b.program.results:
        b.allocate_before_use(one.number)
    b.place_allocations()
    return b.program


def require(function, columns, expected, *, compare=assert_same_outcome):
    """Require the expected results of code, for vectors and for tails of all lengths."""
    # Each tail has different elements.
    spans = [(0, len(columns[0]))]
    start = 0
    for length in LENGTHS:
        spans.append((start, start + length))
        start += length
    for start, end in spans:
        given = [np.resize(one, max(end, len(one)))[start:end] for one in columns]
        wanted = [np.resize(one, max(end, len(one)))[start:end] for one in expected]
        got = call(function, given)
        compare(Outcome(got, []), Outcome(wanted, []))


def same_tuples(columns):
    """Return all tuples of the elements of some columns, as columns."""
    rows = list(itertools.product(*columns))
    return [np.array([row[k] for row in rows], one.dtype) for k, one in enumerate(columns)]


def extremal(name, dtype):
    """Whether the result for two zeros is unspecified."""
    return name in ("minimum", "maximum") and dtype in FLOATS


@cache
def exact_operations(dtype):
    """Return a program of the exact operations, arguments for it, and its results."""
    names = [name for name in EXACT if dtype in OPERATIONS[name].takes and name != "select"]
    one, other = same_tuples([specials(dtype)] * 2)

    def write(b, values):
        for name in names:
            args = list(values[: OPERATIONS[name].arity])
            if extremal(name, dtype):
                args = [b.op("add", arg, b.constant(dtype, 0)) for arg in args]
            yield b.op(name, *args)
        yield b.op("select", b.op("lt", *values), *values)

    expected = []
    for name in names:
        of = "bool" if OPERATIONS[name].gives == "bool" else dtype
        columns = [one, other][: OPERATIONS[name].arity]
        if extremal(name, dtype):
            columns = [column + column.dtype.type(0) for column in columns]
        results = [evaluate(name, of, list(row)) for row in zip(*columns, strict=True)]
        expected.append(np.array(results, NUMPY_DTYPES[of]))
    with np.errstate(invalid="ignore"):
        expected.append(np.where(one < other, one, other))
    return over_columns([dtype, dtype], write), [one, other], expected


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("dtype", ALL)
def test_exact_operations(dtype, machine):
    program, columns, expected = exact_operations(dtype)
    require(compiled(program, MACHINES[machine]), columns, expected)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("dtype", ALL)
def test_casts(dtype, machine):
    column = specials(dtype)
    if dtype in FLOATS:
        column = np.concatenate([column, limits(dtype)])
    others = [other for other in ALL if other != dtype]
    program = over_columns([dtype], lambda b, x: [b.cast(x[0], other) for other in others])
    expected = [
        np.array([cast_scalar(one, other) for one in column], NUMPY_DTYPES[other])
        for other in others
    ]
    require(compiled(program, MACHINES[machine]), [column], expected)


def test_literals_are_operated_on_as_values_are():
    """Let LLVM fold operations that the builder does not: no result may be undefined."""
    b = Builder()
    expected = []

    def add(value, number):
        out = b.buffer("output", len(expected), b.dtype(value), ())
        b.program.results.append(Result("buffer", out))
        b.allocate(out)
        b.store(out, (), value)
        expected.append(np.array(number))

    for dtype in FLOATS:
        of = NUMPY_DTYPES[dtype]
        for number in (np.nan, np.inf, -np.inf, 1e30, -1.5, 200.0, -(2.0**31), 2.0**63, -3e9):
            value = b.constant(dtype, of(number).item())
            for other in INTEGERS:
                add(b.cast(value, other), cast_scalar(of(number), other))
    for dtype in ("i64", "i8", "u64", "u8"):
        info = np.iinfo(NUMPY_DTYPES[dtype])
        some = np.array([0, info.min, info.max, info.bits], NUMPY_DTYPES[dtype])
        some = np.append(some, ~some[:1])
        for name in ("floordiv", "mod", "shl", "shr", "abs", "neg", "add", "mul"):
            for numbers in itertools.product(some, repeat=OPERATIONS[name].arity):
                value = b.op(name, *[b.constant(dtype, one.item()) for one in numbers])
                add(value, evaluate(name, dtype, list(numbers)))
    got = call(compiled(b.program, MACHINES["512"]), [])
    assert_same_outcome(Outcome(got, []), Outcome(expected, []))


# Mathematics

# Arguments near which every function changes little, whatever its number of arguments.
_PLAIN = (0.25, 0.5, 1.25, 2.5, 0.75)
_UNIT = ("arctanh", "arcsin", "arccos", "erfinv", "log1mexp")


def mathematics(name, dtype):
    """Return arguments in the domain of a function."""
    of = NUMPY_DTYPES[dtype]
    arity = OPERATIONS[name].arity
    one = np.linspace(0.05, 0.95, 19)
    if arity == 1 and name not in (*_UNIT, "erfcinv"):
        one = np.concatenate([one, np.linspace(1.1, 12, 21), [np.nan]])
        if name not in ("log", "log2", "log10", "sqrt"):
            one = np.concatenate([one, -one]) if name != "arccosh" else one
    columns = [one.astype(of)]
    columns += [np.resize(np.array(_PLAIN[: 5 - k]), one.size).astype(of) for k in range(1, arity)]
    if name == "log1mexp":
        columns = [-column for column in columns]
    return columns


@pytest.mark.parametrize("machine", ["512", "128"])
@pytest.mark.parametrize("name", MATHEMATICS)
def test_mathematics(name, machine):
    """Call the C library and SciPy, which may round differently from NumPy."""

    def compare(got, wanted):
        for this, that in zip(got.outputs, wanted.outputs, strict=True):
            assert this.dtype == that.dtype
            eps = np.finfo(that.dtype).eps
            # SciPy's single-precision inverse is an implementation of its own, and less accurate.
            worse = 256 if name == "betaincinv" and that.dtype == np.float32 else 1
            np.testing.assert_allclose(this, that, rtol=64 * worse * eps, atol=8 * worse * eps)

    for dtype in FLOATS:
        columns = mathematics(name, dtype)
        program = over_columns([dtype] * len(columns), lambda b, x: [b.op(name, *x)])
        rows = zip(*columns, strict=True)
        expected = np.array([evaluate(name, dtype, list(row)) for row in rows])
        require(compiled(program, MACHINES[machine]), columns, [expected], compare=compare)
