"""Searchsorted: positions of numbers in sorted vectors."""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.native.lowering import check, check_failure
from support.native.ways import check_ways

_DTYPES = ("float64", "float32", "int64", "int8", "uint8", "uint64", "bool")


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Draw a sorted vector with NaN at its end, and numbers, some of which are in it."""
    random = np.random.default_rng(draw(st.integers(0, 99)))
    made = []
    for shape in (
        (draw(st.integers(0, 20)),),
        tuple(draw(st.lists(st.integers(0, 5), max_size=2))),
    ):
        dtype = draw(st.sampled_from(_DTYPES))
        data = np.array(random.integers(0, 9, shape)).astype(dtype)
        if dtype[0] == "f" and data.size and draw(st.booleans()):
            data.flat[random.integers(data.size)] = draw(st.sampled_from([np.nan, -np.inf, -0.0]))
        made.append(data)
    return np.sort(made[0]), made[1]


@given(cases(), st.sampled_from(["left", "right"]), st.booleans())
def test_places(case: tuple[np.ndarray, np.ndarray], side: str, has_sorter: bool) -> None:
    line, numbers = case
    x = pt.tensor("x", dtype=str(line.dtype), shape=(None,))
    v = pt.tensor("v", dtype=str(numbers.dtype), shape=(None,) * numbers.ndim)
    if not has_sorter:
        check([x, v], [pt.searchsorted(x, v, side=side)], [line, numbers], rewrites=False)
        return
    sorter = np.random.default_rng(0).permutation(line.size)
    mixed = np.empty_like(line)
    mixed[sorter] = line
    s = pt.lvector("s")
    out = pt.searchsorted(x, v, side=side, sorter=s)
    check([x, v, s], [out], [mixed, numbers, sorter], rewrites=False)


@pytest.mark.parametrize("length", [0, 1, 2, 37, 600])
def test_machine_code(length: int) -> None:
    random = np.random.default_rng(length)
    x, v, w = pt.vector("x"), pt.matrix("v"), pt.iscalar("w")
    outs = [pt.searchsorted(x, v), pt.searchsorted(x * 2, v, side="right"), pt.searchsorted(x, w)]
    line = np.sort(random.normal(size=length))
    # More numbers than a block.
    check_ways([x, v, w], outs, [line, random.normal(size=(7, 113)), 0], rtol=0.0)


def test_sorters_that_do_not_fit() -> None:
    x, v, s = pt.vector("x"), pt.vector("v"), pt.lvector("s")
    out = [pt.searchsorted(x, v, sorter=s)]
    line = [1.0, 2.0, 3.0]
    text = "sorter.size must equal a.size"
    check_failure([x, v, s], out, [line, [2.0], [0, 1]], ValueError, text)
    text = "Sorter index out of range."
    check_failure([x, v, s], out, [line, [2.0], [0, 3, 1]], ValueError, text)
    check_failure([x, v, s], out, [line, [2.0], [0, -1, 1]], ValueError, text)
