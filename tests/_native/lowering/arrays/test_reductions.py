"""CAReduce along any axes, Argmax and CumOp."""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.scalar import basic as ps
from pytensor.tensor.elemwise import CAReduce
from pytensor.tensor.extra_ops import CumOp
from pytensor.tensor.math import Argmax, ProdWithoutZeros

from pytensor_fuse._native.lowering.registry import lower
from pytensor_fuse._native.lowering.tensors import DTYPES
from support.native.lowering import (
    check,
    check_failure,
    raw_graph,
    run,
    text,
)

ALL = tuple(DTYPES)
# Lengths for which loops are unrolled, and others.
LENGTHS = [0, 1, 2, 3, 5, 9]


@st.composite
def arrays(
    draw: st.DrawFn, dtypes: tuple[str, ...] = ALL, lengths: tuple[int, ...] = tuple(LENGTHS)
) -> tuple[np.ndarray, tuple[int | None, ...], tuple[int, ...]]:
    """Draw an array, the known part of its static shape, and axes."""
    dtype = draw(st.sampled_from(dtypes))
    shape = tuple(draw(st.lists(st.sampled_from(lengths), max_size=4)))
    if np.prod(shape) > 400:
        shape = shape[:2]
    known = tuple([draw(st.sampled_from([None, length])) for length in shape])
    axes = tuple([axis for axis in range(len(shape)) if draw(st.booleans())])
    random = np.random.default_rng(draw(st.integers(0, 99)))
    if dtype == "bool":
        data = random.integers(0, 2, shape).astype(bool)
    elif dtype[0] == "f":
        data = random.normal(size=shape).astype(dtype)
        odd = draw(st.sampled_from([None, np.nan, np.inf, -0.0]))
        if odd is not None and data.size:
            data.flat[random.integers(data.size)] = odd
    else:
        about = np.iinfo(dtype)
        data = random.integers(about.min, about.max, shape, dtype=dtype, endpoint=True)
    return data, known, axes


Case = tuple[np.ndarray, tuple[int | None, ...], tuple[int, ...]]


@given(arrays(), st.sampled_from(["sum", "prod"]))
def test_sums_and_products(case: Case, name: str) -> None:
    data, known, axes = case
    x = pt.tensor("x", dtype=str(data.dtype), shape=known)
    with np.errstate(all="ignore"):
        # For integers the result is exact, and wraps.
        check([x], [getattr(pt, name)(x, axis=axes)], [data], rewrites=False, rtol=1e-4)


@given(arrays(lengths=(1, 2, 3, 5, 9)), st.sampled_from(["max", "min"]))
def test_extremes(case: Case, name: str) -> None:
    data, known, axes = case
    x = pt.tensor("x", dtype=str(data.dtype), shape=known)
    check([x], [getattr(pt, name)(x, axis=axes)], [data], rewrites=False, rtol=1e-16)


@given(arrays(("bool", "int64", "uint8")), st.sampled_from([ps.and_, ps.or_, ps.xor]))
def test_bits(case: Case, op: ps.ScalarOp) -> None:
    data, known, axes = case
    x = pt.tensor("x", dtype=str(data.dtype), shape=known)
    out = CAReduce(op, axis=axes)(x)
    expected = getattr(np, op.nfunc_spec[0]).reduce(data, axis=axes)
    [found] = run(raw_graph([x], [out]), [data])
    assert np.array_equal(found, expected)
    assert found.dtype == expected.dtype


def test_all_and_any() -> None:
    x = pt.matrix("x")
    values = np.array([[0, 1.5, np.nan], [0, 0, 2]])
    check([x], [pt.all(x, axis=0), pt.any(x, axis=1), pt.all(x > -1)], [values])


@pytest.mark.parametrize(
    ("dtype", "least", "most"),
    [
        ("float64", -np.inf, np.inf),
        ("int16", -(2**15), 2**15 - 1),
        ("uint64", 0, 2**64 - 1),
        ("bool", False, True),
    ],
)
def test_extremes_of_nothing_are_those_of_numba(dtype: str, least: float, most: float) -> None:
    # NumPy raises an exception here.
    x = pt.matrix("x", dtype=dtype)
    minimum = CAReduce(ps.minimum, dtype=dtype, acc_dtype=dtype)
    outs = [pt.max(x, axis=0), minimum(x), pt.sum(x), pt.prod(x)]
    values = [np.ones((0, 3), dtype)]
    largest, smallest, *others = run(raw_graph([x], outs), values)
    assert np.array_equal(largest, np.array([least] * 3, dtype))
    assert np.array_equal(smallest, np.array(most, dtype))
    assert others == [0, 1]


def test_accumulators() -> None:
    x = pt.fmatrix("x")
    n = pt.matrix("n", dtype="int8")
    outs = [
        pt.sum(x, axis=0, dtype="float64"),
        pt.sum(x, acc_dtype="float64"),
        pt.sum(n, axis=1, dtype="int8", acc_dtype="int64"),
        pt.prod(n, dtype="float32"),
    ]
    values = [np.float32([[1e8, 1], [-1e8, 3]]), np.array([[100, 100], [-7, 3]])]
    check([x, n], outs, values, rewrites=False, rtol=1e-7)


def test_product_without_zeros() -> None:
    x, y = pt.vector("x"), pt.matrix("y")
    outs = [ProdWithoutZeros()(x), ProdWithoutZeros(axis=(1,))(y)]
    rows = np.array([[0.0, 3], [0, 0], [2, -4]])
    for data, expected in (([0.0, 2, 3], 6), ([0.0, 0], 0), ([], 0), ([5.0], 5)):
        one, other = run(raw_graph([x, y], outs), [np.array(data), rows])
        assert one == expected
        assert other.tolist() == [3, 0, -8]


def test_sums_of_a_rewritten_graph() -> None:
    x, y = pt.matrix("x"), pt.tensor("y", shape=(None, 3))
    outs = [pt.exp(x).sum(axis=1), (x * x).sum(), y.sum(axis=0), (y * 2).sum(axis=1), x.mean(0)]
    values = [np.arange(10.0).reshape(2, 5), np.arange(12.0).reshape(4, 3)]
    check([x, y], outs, values, rtol=1e-14)


# The form of the emitted loops


def test_rows_are_added_in_registers() -> None:
    program = text([x := pt.matrix("x")], [x.sum(axis=1)])
    assert "store add" not in program
    assert program.count("for ") == 2


def test_columns_are_added_row_by_row() -> None:
    program = text([x := pt.matrix("x")], [x.sum(axis=0)])
    assert program.count("store add") == 1


def test_few_columns_are_added_in_one_loop() -> None:
    program = text([x := pt.tensor("x", shape=(None, 3))], [x.sum(axis=0)])
    assert "store add" not in program
    assert program.count("for ") == 1


def test_few_rows_are_added_without_a_loop_over_them() -> None:
    program = text([x := pt.tensor("x", shape=(3, None))], [x.sum(axis=0)])
    assert "store add" not in program
    assert program.count("for ") == 1


# Argmax


@given(arrays(lengths=(1, 2, 3, 5, 9)))
def test_argmax(case: Case) -> None:
    data, known, axes = case
    if data.dtype != bool and data.size > 3:
        # So that some elements are equal.
        data = data.copy()
        data.flat[1::2] = data.flat[: data.size // 2]
    x = pt.tensor("x", dtype=str(data.dtype), shape=known)
    if axes or not data.ndim:
        check([x], [Argmax(axes if data.ndim else None)(x)], [data], rewrites=False)


@pytest.mark.parametrize(
    "data", [[np.nan, 1, np.nan], [-np.inf, -np.inf], [1, np.inf, np.nan], [0.0, -0.0], [-0.0, 0.0]]
)
def test_argmax_of_special_numbers(data: list[float]) -> None:
    x = pt.vector("x")
    check([x], [pt.argmax(x)], [np.array(data)])


def test_argmax_of_nothing() -> None:
    x = pt.matrix("x")
    out = pt.argmax(x, axis=0)
    message = "attempt to get argmax of an empty sequence"
    check_failure([x], [out], [np.ones((0, 3))], ValueError, message)
    # Numba mode has no such check.
    [found] = run(raw_graph([x], [out]), [np.ones((0, 0))])
    assert found.shape == (0,)


# CumOp


@given(arrays(tuple(dtype for dtype in ALL if dtype != "bool")), st.sampled_from(["add", "mul"]))
def test_cumulative(case: Case, mode: str) -> None:
    data, known, _ = case
    x = pt.tensor("x", dtype=str(data.dtype), shape=known)
    outs = [CumOp(axis, mode=mode)(x) for axis in range(data.ndim)]
    if data.dtype.itemsize < 8 and data.dtype.kind != "f":
        # NumPy accumulates in wider integers, and Numba in the dtype of the output.
        data = np.clip(data, 0, 1)
    if outs:
        with np.errstate(all="ignore"):
            got = run(raw_graph([x], outs), [data])
            accumulate = np.cumsum if mode == "add" else np.cumprod
            for axis, one in enumerate(got):
                expected = accumulate(data, axis=axis, dtype=data.dtype)
                assert one.dtype == data.dtype
                assert np.array_equal(one, expected, equal_nan=data.dtype.kind == "f")


def test_cumulative_in_a_rewritten_graph() -> None:
    x = pt.matrix("x")
    check([x], [pt.cumsum(x, axis=0), pt.cumprod(x, axis=1)], [np.arange(6.0).reshape(2, 3)])


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32"])
def test_cumulative_sums_of_small_integers_are_refused(dtype: str) -> None:
    x = pt.vector("x", dtype=dtype)
    assert f"cumulative sums of {dtype}" in (lower.refusal(CumOp(0)(x).owner) or "")
