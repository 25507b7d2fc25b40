"""BlockDiagonal."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
from hypothesis import given
from hypothesis import strategies as st
from pytensor.tensor import linalg
from pytensor.tensor.linalg.constructors import BlockDiagonal

from support.native.functions import native_function
from support.native.lowering import check
from support.native.matrices import Given, given_matrices, require_close

DTYPES = ("float64", "float32", "int64", "uint8")


@given(
    st.lists(given_matrices(is_square=False, dtypes=DTYPES), min_size=2, max_size=3),
)
def test_blocks(blocks: list[Given]) -> None:
    output = BlockDiagonal(len(blocks))(*[one.matrix for one in blocks])
    inputs = [variable for one in blocks for variable in one.inputs]
    values = [value for one in blocks for value in one.values]
    check(inputs, [output], values)


def test_bools():
    x, y = pt.bmatrix("x"), pt.matrix("y", dtype="bool")
    check([x, y], [BlockDiagonal(2)(x, y)], [np.ones((2, 1)), np.ones((1, 2))])


def test_value_and_gradient():
    x, y, weights = pt.dmatrices("x", "y", "weights")
    cost = (weights * linalg.block_diag(x, y) ** 3).sum()
    outputs = [cost, *pytensor.grad(cost, [x, y])]
    random = np.random.default_rng(12)
    given = [random.normal(size=shape) for shape in ((2, 3), (4, 1), (6, 4))]
    found = native_function([x, y, weights], outputs)(*given)
    expected = pytensor.function([x, y, weights], outputs, mode="FAST_COMPILE")(*given)
    for one, other in zip(found, expected, strict=True):
        require_close(one, other, 1e-12)
