"""Repeat, and the conversions of flat indices and coordinates."""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt
from hypothesis import given
from hypothesis import strategies as st
from pytensor.tensor.extra_ops import Repeat

from support.native.lowering import check, check_failure
from support.native.ways import check_ways

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
