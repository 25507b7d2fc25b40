"""Invalid indices: the exception and the text of stock Numba mode, or the expected ones."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from support.native.lowering import check, check_failure, failure_of_stock, raw_graph, run
from support.switching import switched

X, Y, M = pt.vector("x"), pt.vector("y"), pt.matrix("m")
AT, STEP = pt.scalar("i", dtype="int32"), pt.scalar("j", dtype="int64")
K, L = pt.vector("k", dtype="int64"), pt.vector("l", dtype="int64")
MASK, MASKS = pt.vector("mask", dtype="bool"), pt.matrix("masks", dtype="bool")
OUT_OF_BOUNDS = "index is out of bounds"

_VECTOR = np.arange(5.0)
_MATRIX = np.arange(6.0).reshape(2, 3)
_SHORT = np.array([True, False])


class Wrong(NamedTuple):
    """A failing graph, and values of its inputs."""

    name: str
    inputs: list[Any]
    output: Any
    values: list[Any]


# Cases that stock Numba mode checks.
SEEN = (
    Wrong("integer", [X, AT], X[AT], [_VECTOR, 5]),
    Wrong("negative integer", [X, AT], X[AT], [_VECTOR, -6]),
    Wrong("step", [X, STEP], X[::STEP], [_VECTOR, 0]),
    Wrong("value set", [X, Y], pt.set_subtensor(X[1:], Y), [_VECTOR, np.ones(3)]),
    Wrong("matrix set", [M, Y], pt.set_subtensor(M[:, ::2], Y), [_MATRIX, np.ones(3)]),
    Wrong("value added", [X, Y, K], pt.inc_subtensor(X[K], Y), [_VECTOR, np.ones(3), [1, 2]]),
    Wrong("index arrays", [M, K, L], M[K, L], [_MATRIX, [1, 0], [0, 1, 1]]),
    Wrong(
        "masked value",
        [X, MASK, Y],
        pt.set_subtensor(X[MASK], Y),
        [_VECTOR, _VECTOR > 1, np.ones(2)],
    ),
)

# Cases that it does not check: it reads and writes out of bounds.
UNSEEN = (
    Wrong("index array", [X, K], X[K], [_VECTOR, [1, 5]]),
    Wrong("negative index array", [X, K], X[K], [_VECTOR, [1, -6]]),
    Wrong("constant index array", [X], X[np.array([1, 5, 2])], [_VECTOR]),
    Wrong("second index array", [M, K, L], M[K, L], [_MATRIX, [0, 1], [0, 3]]),
    Wrong("written", [X, K], pt.inc_subtensor(X[K], 1.0), [_VECTOR, [1, 7]]),
    Wrong("set", [M, K], pt.set_subtensor(M[:, K], 1.0), [_MATRIX, [1, 7]]),
    Wrong("long mask", [X, MASK], X[MASK.nonzero()], [_VECTOR, np.ones(7, bool)]),
)


@pytest.mark.parametrize("wrong", SEEN, ids=[wrong.name for wrong in SEEN])
def test_failures_are_those_of_stock(wrong):
    exception, message = failure_of_stock(wrong.inputs, [wrong.output], wrong.values)
    check_failure(wrong.inputs, [wrong.output], wrong.values, exception, message)


@pytest.mark.parametrize("wrong", UNSEEN, ids=[wrong.name for wrong in UNSEEN])
def test_index_arrays_are_always_looked_at(wrong):
    check_failure(wrong.inputs, [wrong.output], wrong.values, IndexError, OUT_OF_BOUNDS)


def test_masks_must_be_as_long_as_what_they_select_from():
    message = (
        "boolean index did not match indexed array along axis 1; size of axis is 3 "
        "but size of corresponding boolean axis is 2"
    )
    with pytest.raises(IndexError, match=message):
        run(raw_graph([M, MASKS], [M[MASKS]]), [_MATRIX, np.ones((2, 2), bool)])
    with pytest.raises(IndexError, match=message):
        run(raw_graph([M, MASK], [M[:, MASK]]), [_MATRIX, np.ones(2, bool)])


@pytest.mark.parametrize(
    ("inputs", "output", "values"),
    [
        ([X, MASK], X[MASK], [_VECTOR, _SHORT]),
        ([X, MASK], pt.set_subtensor(X[MASK], 7.0), [_VECTOR, _SHORT]),
        ([M, MASK], M[MASK], [_MATRIX, _SHORT[:1]]),
        ([M, MASKS], M[MASKS], [_MATRIX, _SHORT[None]]),
    ],
)
def test_a_mask_that_is_too_small_is_taken_as_stock_takes_it(inputs, output, values):
    """NumPy raises. PyTensor converts the mask to positions of its ones, and drops its shape."""
    with switched(native=False):
        stock = pytensor.function(inputs, output, mode="NUMBA")
    native = pytensor.function(inputs, output, mode="NATIVE")
    np.testing.assert_array_equal(native(*values), stock(*values))


def test_what_selects_nothing_may_be_out_of_bounds():
    check([M, K, L], [M[K, L]], [_MATRIX, [7], np.zeros(0, int)])
