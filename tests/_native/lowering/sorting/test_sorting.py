"""Sorts, their permutations, and unique elements."""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.tensor.extra_ops import Unique

from pytensor_fuse._native.lowering.registry import lower
from pytensor_fuse._native.lowering.tensors import DTYPES
from support.native.lowering import check, raw_graph
from support.native.ways import check_ways

# Few numbers, so that many are equal; among them are both zeros, and NaN.
_FLOATS = (0.0, -0.0, 1.0, -1.5, 2.0, np.nan, np.inf, -np.inf, 1e-310)


@st.composite
def arrays(draw: st.DrawFn, ndim: int = 2) -> np.ndarray:
    """Draw an array of any dtype, many elements of which are equal."""
    dtype = draw(st.sampled_from(list(DTYPES)))
    lengths = st.sampled_from([0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 21])
    shape = draw(st.tuples(*[lengths] * ndim))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    if dtype[0] == "f":
        return random.choice(draw(st.lists(st.sampled_from(_FLOATS), min_size=1)), shape).astype(
            dtype
        )
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    about = np.iinfo(dtype)
    numbers = [0, 1, 5, about.max, about.min, about.max - 1]
    return random.choice(np.array(numbers, dtype), shape)


@given(arrays(), st.sampled_from([0, 1, -1, None]))
def test_sorts(data: np.ndarray, axis: int | None) -> None:
    x = pt.tensor("x", dtype=str(data.dtype), shape=(None, None))
    # All of these are stable: the signs of zeros are as in NumPy's stable sort.
    outs = [pt.sort(x, axis=axis, kind="stable"), pt.argsort(x, axis=axis, kind="stable")]
    check([x], outs, [data], rewrites=False)


@given(arrays(), st.tuples(st.booleans(), st.booleans(), st.booleans()))
def test_unique_elements(data: np.ndarray, asked: tuple[bool, bool, bool]) -> None:
    x = pt.tensor("x", dtype=str(data.dtype), shape=(None, None))
    outs = Unique(*asked)(x, return_list=True)
    # The order of the two zeros is unspecified, unless their positions are requested.
    check([x], outs, [data], rewrites=False, rtol=1e-16)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8", "bool"])
@pytest.mark.parametrize("length", [0, 1, 4, 6, 100])
@pytest.mark.parametrize("machine", ["512", "128"])
def test_machine_code(dtype: str, length: int, machine: str) -> None:
    random = np.random.default_rng(length)
    data = random.integers(0, 30, (3, length)).astype(dtype)
    if dtype[0] == "f" and length > 3:
        data[1, 2:4] = np.nan, -np.inf
    x = pt.tensor("x", dtype=dtype, shape=(None, None))
    outs = [
        pt.sort(x, axis=1),
        pt.argsort(x, axis=0, kind="stable"),
        *Unique(True, True, True)(x, return_list=True),
    ]
    check_ways([x], outs, [data], rtol=0.0, machine=machine, forms=("raw",))


@pytest.mark.parametrize("length", [5, 64, 257, 700])
@pytest.mark.parametrize("order", ["random", "sorted", "reversed", "nearly"])
def test_long_lines(length: int, order: str) -> None:
    data = np.random.default_rng(0).normal(size=length)
    if order != "random":
        data = np.sort(data)
    if order == "reversed":
        data = data[::-1]
    if order == "nearly":
        data[-1] = data[0]
    x = pt.vector("x")
    check([x], [pt.sort(x), pt.argsort(x, kind="stable")], [data], rewrites=False)


def test_lines_known_in_length_and_gradients() -> None:
    x = pt.matrix("x", shape=(3, 5))
    data = np.random.default_rng(1).normal(size=(3, 5))
    weights = np.arange(15.0).reshape(3, 5)
    cost = (pt.sort(x, axis=0) * weights).sum()
    check_ways([x], [cost, pt.grad(cost, x)], [data], rtol=1e-14)


def test_sort_of_a_sequence_in_each_step() -> None:
    from pytensor.scan.basic import scan

    x = pt.matrix("x")
    [out] = scan(
        lambda row: pt.sort(row * row), sequences=[x], return_updates=False, return_list=True
    )
    check_ways([x], [out], [np.random.default_rng(1).normal(size=(3, 9))], rtol=0.0)


def test_what_is_refused() -> None:
    x = pt.matrix("x")
    fgraph = raw_graph([x], [Unique(axis=0)(x)])
    [node] = fgraph.apply_nodes
    assert lower.refusal(node) == "unique rows or columns"
