"""Elementwise values that a loop writes by index, with fewer axes than the target."""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.native.lowering import check

LENGTHS = st.lists(st.sampled_from([0, 1, 2, 3, 3]), max_size=2)


@st.composite
def writes(draw):
    """Draw a write of sums to `x[:, ..., indices, :, ...]`, and values of its inputs."""
    before, after = draw(LENGTHS, label="before"), draw(LENGTHS, label="after")
    n_indices, length = draw(st.integers(0, 3)), draw(st.integers(1, 3))
    dtype = draw(st.sampled_from(["float32", "float64"]))
    # The sum covers some of the axes before the indexed one, and some after it.
    from_axis = draw(st.integers(0, len(before)), label="first axis of the sum")
    to_axis = draw(st.integers(0, len(after)), label="axes after the indices")
    n_padded = len(after) - to_axis
    shape = (*before[from_axis:], n_indices, *after[:to_axis])
    rng = np.random.default_rng(1)
    values = [
        rng.normal(size=(*before, length, *after)).astype(dtype),
        rng.integers(-length, length, size=n_indices),
        *rng.normal(size=(2, *shape)).astype(dtype),
    ]
    x, indices, one, other = (
        pt.tensor(name, shape=(None,) * value.ndim, dtype=value.dtype)
        for name, value in zip(("x", "indices", "one", "other"), values, strict=True)
    )
    base = draw(st.sampled_from([x, x[::-1], x * 2] if before else [x, x * 2]))
    written = base[(*(slice(None) for _ in before), indices)]
    total = pt.shape_padright(one + other, n_padded)
    out = written.set(total) if draw(st.booleans(), label="set") else written.inc(total)
    return [x, indices, one, other], [out], values


@given(writes())
def test_loops_that_write_by_index_align_their_values(case):
    check(*case)


@pytest.mark.parametrize("is_set", [False, True])
def test_equal_lengths_do_not_hide_the_axis(is_set):
    """An axis before the indices has the same length, so that a wrong axis would not fail."""
    x, one = pt.dmatrix("x"), pt.dvector("one")
    into = x[:, [0, 2, 2]]
    out = into.set(one + 1) if is_set else into.inc(one + 1)
    check([x, one], [out], [np.arange(9.0).reshape(3, 3), np.array([1.0, 10.0, 100.0])])
