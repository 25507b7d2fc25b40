"""Convolutions of vectors and matrices."""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.tensor.signal.conv import Convolve1d, Convolve2d

from pytensor_fuse._native.lowering.registry import lower
from support.native.lowering import check, check_failure, raw_graph
from support.native.ways import check_ways

_DTYPES = ("float64", "float32", "int64", "int8", "uint8")
_lengths = st.integers(1, 12)
_dtypes = st.sampled_from(_DTYPES)


@given(
    st.tuples(_lengths, _lengths),
    st.tuples(_dtypes, _dtypes),
    st.sampled_from([True, False, None]),
    st.booleans(),
)
def test_convolutions(
    lengths: tuple[int, int], dtypes: tuple[str, str], is_full: bool | None, is_known: bool
) -> None:
    random = np.random.default_rng(lengths)
    given_, data = [], []
    for length, dtype in zip(lengths, dtypes, strict=True):
        data.append(random.integers(0, 100, length).astype(dtype))
        given_.append(pt.tensor(dtype=dtype, shape=(length if is_known else None,)))
    if is_full is None:
        flag = pt.scalar(dtype="bool")
        for full in (True, False):
            out = Convolve1d()(*given_, flag)
            check([*given_, flag], [out], [*data, full], rewrites=False, rtol=1e-5)
    else:
        out = Convolve1d()(*given_, np.bool_(is_full))
        check(given_, [out], data, rewrites=False, rtol=1e-5)


@pytest.mark.parametrize("mode", ["full", "valid", "same"])
@pytest.mark.parametrize("length", [1, 5, 100])
def test_machine_code_and_gradients(mode: str, length: int) -> None:
    random = np.random.default_rng(length)
    x, y = pt.vector("x"), pt.vector("y")
    out = pt.signal.convolve1d(x, y, mode=mode)
    cost = (out**2).sum()
    values = [random.normal(size=length), random.normal(size=5 if length == 100 else 1)]
    check_ways([x, y], [out, *pt.grad(cost, [x, y])], values, rtol=1e-12)


def test_nothing_to_convolve() -> None:
    x, y = pt.vector("x"), pt.vector("y")
    out = [Convolve1d()(x, y, np.bool_(True))]
    check_failure([x, y], out, [[], [1.0]], ValueError, "a cannot be empty")
    check_failure([x, y], out, [[1.0], []], ValueError, "v cannot be empty")


def test_what_is_refused() -> None:
    x = pt.vector("x", dtype="bool")
    fgraph = raw_graph([x], [Convolve1d()(x, x, np.bool_(True))])
    [why] = [lower.refusal(node) for node in fgraph.apply_nodes]
    assert why == "a convolution of truth values"


@given(
    st.tuples(_lengths, _lengths),
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.sampled_from(["float64", "float32", "int64"]),
    st.booleans(),
    st.booleans(),
)
def test_convolutions_of_matrices(
    shape: tuple[int, int], other: tuple[int, int], dtype: str, is_full: bool, is_known: bool
) -> None:
    random = np.random.default_rng(shape)
    data = [random.integers(-9, 9, one).astype(dtype) for one in (shape, other)]
    x = pt.tensor("x", dtype=dtype, shape=(None, None))
    y = pt.tensor("y", dtype=dtype, shape=other if is_known else (None, None))
    op = Convolve2d(method="auto" if is_known else "direct")
    out = [op(x, y, np.bool_(is_full))]
    sizes = list(zip(shape, other, strict=True))
    if is_full or all(one >= two for one, two in sizes) or all(one <= two for one, two in sizes):
        check([x, y], out, data, rewrites=False, rtol=1e-5)
        return
    text = "For 'valid' mode, one must be at least as large as the other in every dimension"
    check_failure([x, y], out, data, ValueError, text)


@pytest.mark.parametrize("mode", ["full", "valid", "same"])
def test_machine_code_for_matrices(mode: str) -> None:
    random = np.random.default_rng(0)
    x, y = pt.matrix("x"), pt.matrix("y", shape=(3, 2))
    out = pt.signal.convolve2d(x, y, mode=mode, method="direct")
    outs = [out, *pt.grad((out**2).sum(), [x, y])]
    check_ways([x, y], outs, [random.normal(size=(9, 20)), random.normal(size=(3, 2))], rtol=1e-12)


def test_matrices_for_fourier_transforms() -> None:
    x, y = pt.matrix("x"), pt.matrix("y", shape=(30, 30))
    why = "a convolution for which a Fourier transform may be faster"
    for method, expected in (("auto", why), ("fft", why), ("direct", None)):
        [node] = raw_graph([x, y], [Convolve2d(method)(x, y, np.bool_(True))]).apply_nodes
        assert lower.refusal(node) == expected
