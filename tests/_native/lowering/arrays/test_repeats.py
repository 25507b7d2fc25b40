"""Repeat, and the conversions of flat indices and coordinates."""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.tensor.extra_ops import Repeat

from support.native_lowering import check, check_failure
from support.native_ways import check_ways

_NEGATIVE = "negative dimensions are not allowed"


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=3),
    st.integers(0, 2),
    st.booleans(),
    st.integers(0, 99),
    st.sampled_from(["float64", "int8", "bool"]),
)
def test_repeats(lengths: list[int], axis: int, is_same: bool, seed: int, dtype: str) -> None:
    axis = axis % len(lengths)
    random = np.random.default_rng(seed)
    data = random.integers(0, 2, lengths).astype(dtype)
    numbers = random.integers(0, 4, 1 if is_same else lengths[axis])
    x = pt.tensor("x", dtype=dtype, shape=(None,) * len(lengths))
    n = pt.lvector("n")
    check([x, n], [Repeat(axis)(x, n)], [data, numbers], rewrites=False)


def test_machine_code_and_gradients() -> None:
    x, n = pt.matrix("x"), pt.ivector("n")
    data = np.random.default_rng(0).normal(size=(3, 4))
    out = pt.repeat(x, n, axis=1)
    cost = (out**2).sum()
    check_ways([x, n], [out, pt.grad(cost, x)], [data, [2, 0, 3, 1]], rtol=1e-14)
    out = Repeat(0)(x * 2, pt.as_tensor([3]))
    check_ways([x], [out], [data], rtol=1e-14)


def test_numbers_that_do_not_fit() -> None:
    x, n = pt.vector("x"), pt.lvector("n")
    out, data = [Repeat(0)(x, n)], [1.0, 2.0, 3.0]
    check_failure([x, n], out, [data, [1, -2, 1]], ValueError, _NEGATIVE)
    check_failure([x, n], out, [data, [-2]], ValueError, _NEGATIVE)
    text = "operands could not be broadcast together"
    check_failure([x, n], out, [data, [1, 2]], ValueError, text)
    text = "an array would have more elements than any memory"
    check_failure([x, n], out, [data, [2**62, 2**62, 2**62]], MemoryError, text)
    x = pt.matrix("x")
    out, matrix = [Repeat(1)(x, n)], [data]
    text = "operands could not be broadcast together with shape (3,) (2,)"
    check_failure([x, n], out, [matrix, [1, 2]], ValueError, text)
    text = "repeats may not contain negative values."
    check_failure([x, n], out, [matrix, [1, 2, -1]], ValueError, text)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("ndim", [0, 1, 2])
def test_coordinates(order: str, ndim: int) -> None:
    flat = pt.tensor("flat", dtype="int32", shape=(None,) * ndim)
    lengths = pt.lvector("lengths", shape=(3,))
    shape = (3, 4)[:ndim]
    data = np.random.default_rng(0).integers(0, 60, shape)
    outs = list(pt.unravel_index(flat, lengths, order=order))
    check_ways([flat, lengths], outs, [data, [3, 4, 5]], rtol=0.0)
    check_ways([flat, lengths], outs, [data[:0] if ndim else 59, [3, 4, 5]], rtol=0.0)


def test_flat_indices_out_of_bounds() -> None:
    flat = pt.lvector("flat")
    outs = list(pt.unravel_index(flat, (3, 4)))
    text = "index {} is out of bounds for array with size 12"
    check_failure([flat], outs, [[1, 12]], ValueError, text.format(12))
    check_failure([flat], outs, [[-1]], ValueError, text.format(-1))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
@pytest.mark.parametrize("ndim", [0, 1, 2])
def test_flat_indices(order: str, mode: str, ndim: int) -> None:
    places = [pt.tensor(dtype=dtype, shape=(None,) * ndim) for dtype in ("int64", "int8", "int32")]
    limits = (3, 4, 5)
    random, shape = np.random.default_rng(0), (3, 4)[:ndim]
    if mode == "raise":
        values = [random.integers(0, limit, shape) for limit in limits]
    else:
        values = [random.integers(-20, 20, shape) for _ in limits]
    out = pt.ravel_multi_index(places, limits, mode=mode, order=order)
    check_ways(places, [out], values, rtol=0.0)


def test_coordinates_out_of_bounds() -> None:
    rows, columns, limits = pt.lvector("rows"), pt.lvector("columns"), pt.lvector(shape=(2,))
    given = [rows, columns, limits]
    out = [pt.ravel_multi_index((rows, columns), limits)]
    text = "invalid entry in coordinates array"
    for bad in ([[0, 3], [1, 1]], [[0, 1], [1, 4]], [[-1, 1], [1, 1]]):
        check_failure(given, out, [*bad, [3, 4]], ValueError, text)
    text = "all input arrays must have the same shape"
    check_failure(given, out, [[0, 1], [1], [3, 4]], ValueError, text)
    out = [pt.ravel_multi_index((rows, columns), limits, mode="wrap")]
    text = "cannot unravel if shape has zero entries (is empty)."
    check_failure(given, out, [[0], [1], [3, 0]], ValueError, text)
