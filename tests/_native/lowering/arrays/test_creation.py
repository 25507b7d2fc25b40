"""Ops that make arrays from numbers."""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.tensor.basic import Alloc, ARange, MakeVector

from pytensor_fuse._native.lowering.tensors import DTYPES
from support.native.lowering import check, check_failure, raw_graph, run, text

NEGATIVE = "negative dimensions not allowed"


def test_alloc_of_numbers_and_arrays() -> None:
    n, m = pt.lscalar("n"), pt.bscalar("m")
    x, v, column = pt.scalar("x"), pt.vector("v"), pt.tensor("c", shape=(None, 1))
    one = pt.tensor("one", shape=(1, 1))
    outs = [
        pt.alloc(x, n, m),
        pt.alloc(v, 2, n),
        pt.alloc(column, n, m),
        pt.alloc(one, n, m),
        pt.alloc(np.int8(3), n),
        pt.alloc(v, n),
        pt.zeros((m, 2, 0)),
    ]
    values = [3, 2, 0.5, np.arange(3.0), np.arange(3.0)[:, None], np.ones((1, 1))]
    check([n, m, x, v, column, one], outs, values)


def test_alloc_of_a_number_stores_nothing() -> None:
    x, v = pt.scalar("x"), pt.vector("v")
    program = text([x, v], [pt.alloc(pt.exp(x), v.shape[0]) + v])
    # All lengths are one value, so there is one loop.
    assert program.count("check") == 0
    assert program.count("for ") == 1


def test_alloc_of_what_does_not_fit() -> None:
    v, n = pt.vector("v"), pt.lscalar("n")
    out = pt.alloc(v, 2, n)
    message = Alloc._runtime_broadcast_error_msg
    check_failure([v, n], [out], [np.ones(1), 4], ValueError, message)
    message = "could not broadcast input array into the shape requested by Alloc"
    check_failure([v, n], [out], [np.ones(3), 4], ValueError, message)
    check([v, n], [out], [np.ones(1), 1])


def test_negative_lengths() -> None:
    n, x = pt.lscalar("n"), pt.scalar("x")
    for out in (pt.alloc(x, n, 2), pt.eye(n, 2, 0), pt.empty((2, n))):
        check_failure([n, x], [out], [-1, 0.5], ValueError, NEGATIVE)


def test_alloc_empty() -> None:
    n, v = pt.lscalar("n"), pt.vector("v")
    out = pt.set_subtensor(pt.empty((n,))[:], v)
    check([n, v], [out], [3, np.arange(3.0)], rewrites=False)
    [found] = run(raw_graph([n], [pt.empty((n, 2), dtype="int8")]), [3])
    assert found.shape == (3, 2)
    assert found.dtype == "int8"


@given(st.integers(0, 4), st.integers(0, 4), st.integers(-6, 6), st.sampled_from(list(DTYPES)))
def test_eye(rows: int, columns: int, shift: int, dtype: str) -> None:
    n, m, k = pt.lscalars("nmk")
    check([n, m, k], [pt.eye(n, m, k, dtype=dtype)], [rows, columns, shift], rewrites=False)
    check([], [pt.eye(rows, columns, shift, dtype=dtype)], [], rewrites=False)


@given(st.integers(-9, 9), st.integers(-9, 9), st.integers(-4, 4).filter(bool))
def test_arange_of_integers(start: int, stop: int, step: int) -> None:
    a, b, c = pt.lscalar("a"), pt.bscalar("b"), pt.iscalar("c")
    outs = [ARange("int64")(a, b, c), ARange("float64")(a, b, c), ARange("int8")(a, b, c)]
    check([a, b, c], outs, [start, stop, step], rewrites=False)
    check([], [pt.arange(start, stop, step)], [], rewrites=False)


@given(st.floats(-9, 9), st.floats(-9, 9), st.floats(0.1, 4), st.booleans())
def test_arange_of_floats(start: float, stop: float, step: float, goes_down: bool) -> None:
    a, b, c = pt.scalars("abc")
    step = -step if goes_down else step
    # NumPy uses the difference of the first two elements as the step, Numba the given step.
    check([a, b, c], [pt.arange(a, b, c)], [start, stop, step], rewrites=False, rtol=1e-11)


def test_arange_of_no_steps() -> None:
    a, b, c = pt.lscalars("abc")
    check_failure(
        [a, b, c], [pt.arange(a, b, c)], [0, 5, 0], ValueError, "Maximum allowed size exceeded"
    )
    x, y, z = pt.scalars("xyz")
    for step in (0.0, 1e-300):
        check_failure(
            [x, y, z],
            [pt.arange(x, y, z)],
            [0.0, 1.0, step],
            ValueError,
            "Maximum allowed size exceeded",
        )
    [found] = run(raw_graph([x, y, z], [pt.arange(x, y, z)]), [0.0, np.nan, 1.0])
    assert found.shape == (0,)


def test_arange_over_an_array_is_as_long() -> None:
    v = pt.vector("v")
    program = text([v], [pt.arange(v.shape[0]) * v])
    assert "check" not in program


@pytest.mark.parametrize("dtype", ["float64", "int8", "bool"])
def test_make_vector(dtype: str) -> None:
    a, b = pt.scalar("a", dtype=dtype), pt.scalar("b", dtype=dtype)
    v = MakeVector(dtype)(a, b, a)
    outs = [v, v[1], pt.stack([a, b]), MakeVector(dtype)()]
    check([a, b], outs, [1, 0], rewrites=False)
