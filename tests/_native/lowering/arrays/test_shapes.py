"""Reshape and other ops on shapes, DimShuffle and diagonals."""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.tensor.basic import ExtractDiag
from pytensor.tensor.shape import Reshape, shape, specify_shape

from pytensor_fuse._native.lowering.registry import lower
from support.native.lowering import check, check_failure, raw_graph, run, text

OTHER_SIZE = "total size of new array must be unchanged"


@st.composite
def reshapes(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Draw two shapes with the same number of elements, by distributing factors over axes."""
    factors = draw(st.lists(st.sampled_from([0, 1, 2, 3, 5]), max_size=4))
    shapes = []
    for _ in range(2):
        ndim = draw(st.integers(1, 4))
        new = [1] * ndim
        # Mostly in order, so that some axes are preserved.
        for factor in factors:
            new[draw(st.integers(0, ndim - 1))] *= factor
        shapes.append(new)
    return shapes[0], shapes[1]


def data_of(lengths: list[int]) -> np.ndarray:
    return np.arange(np.prod(lengths, dtype=int), dtype="float64").reshape(lengths)


@given(reshapes(), st.data())
def test_reshape(shapes: tuple[list[int], list[int]], data: st.DataObject) -> None:
    old, new = shapes
    known = [data.draw(st.sampled_from([None, length])) for length in old]
    x, s = pt.tensor("x", shape=known), pt.vector("s", dtype="int64", shape=(len(new),))
    numbers = [pt.lscalar() if data.draw(st.booleans()) else length for length in new]
    inferred = data.draw(st.sampled_from([None, *range(len(new))]))
    lengths = list(new)
    if inferred is not None and 0 not in old:
        lengths[inferred] = -1
        numbers[inferred] = -1
    # PyTensor divides by 0 while it infers static shapes.
    with np.errstate(all="ignore"):
        outs = [x.reshape(numbers), Reshape(len(new))(x, s), (x + 1).reshape(lengths)]
        # An operand that is not in memory, and whose elements are computed at other indices.
        backwards = x.dimshuffle(*reversed(range(x.ndim))).reshape(lengths)
        outs += [backwards, backwards.sum(), pt.sqr(x).reshape(numbers) * 2]
    unknown = [at for at, one in enumerate(numbers) if not isinstance(one, int)]
    inputs = [x, s, *(numbers[at] for at in unknown)]
    values = [data_of(old), lengths, *(new[at] for at in unknown)]
    check(inputs, outs, values, rewrites=False)


def test_reshape_in_a_rewritten_graph() -> None:
    x, v, n = pt.matrix("x"), pt.vector("v"), pt.lscalar("n")
    outs = [
        x.ravel() * v,
        x.T.ravel(),
        v.reshape((n, -1)) + 1,
        x.reshape((x.shape[0], 1, x.shape[1])) + v[:3],
        (x[:, None] * 2).reshape((-1, 3)),
        v[:1].reshape(()),
    ]
    check([x, v, n], outs, [data_of([2, 3]), np.arange(6.0), 2])


def test_reshapes_that_are_not_possible() -> None:
    x, s = pt.matrix("x"), pt.vector("s", dtype="int64", shape=(2,))
    out = Reshape(2)(x, s)
    for lengths in ([2, 4], [-1, 4], [-1, 0], [2**32, 2**32], [0, -1]):
        check_failure([x, s], [out], [data_of([2, 3]), lengths], ValueError, OTHER_SIZE)
    check_failure(
        [x, s], [out], [data_of([2, 3]), [-1, -1]], ValueError, "multiple negative shape values"
    )
    check_failure([x, s], [out], [data_of([0, 3]), [2**32, 2**32]], ValueError, OTHER_SIZE)
    # NumPy cannot infer the length for -1 here.
    [found] = run(raw_graph([x, s], [out]), [data_of([0, 3]), [0, -1]])
    assert found.shape == (0, 0)
    t = pt.lvector("t")
    assert "number of axes" in (lower.refusal(Reshape(2)(x, t).owner) or "number of axes")


def test_axes_that_stay_are_not_divided() -> None:
    x = pt.tensor("x", shape=(None, 4, 6))
    program = text([x], [x.reshape((-1, 4, 2, 3)) * 2])
    assert "floordiv" not in program
    program = text([x], [x.reshape((x.shape[0], 1, 4, 6)) * 2])
    assert "mul" not in program.replace("mul f64", "") or "floordiv" not in program
    y = pt.vector("y")
    assert "floordiv" not in text([y], [y.reshape((-1, 1)) + 1])


def test_a_reshape_that_is_known_to_fit_is_not_checked() -> None:
    x = pt.matrix("x")
    program = text([x], [x.reshape((x.shape[1] * 0 + x.shape[0], x.shape[1])) + 1])
    assert program.count("for ") == 2
    assert "check" not in text([x], [x.reshape((-1,))])


def test_shapes() -> None:
    x = pt.tensor("x", shape=(None, 3))
    n = pt.lscalar("n")
    outs = [shape(x), x.shape[0], x.shape[1], (x * 2).shape[0] + n, pt.zeros((n, 2)).shape.prod()]
    check([x, n], outs, [np.ones((2, 3)), 4])
    check([x, n], outs, [np.ones((0, 3)), 0], rewrites=False)


def test_specify_shape() -> None:
    x, n = pt.matrix("x"), pt.lscalar("n")
    outs = [specify_shape(x, (2, None)) + 1, specify_shape(x, (n, 3))]
    check([x, n], outs, [data_of([2, 3]), 2])
    message = "SpecifyShape: dim 1 of input has shape 3, expected 4."
    out = specify_shape(x, (2, n)) * 2
    check_failure([x, n], [out], [data_of([2, 3]), 4], AssertionError, message)


# DimShuffle


@given(st.permutations(range(3)), st.lists(st.integers(0, 3), max_size=2), st.booleans())
def test_dimshuffle(order: list[int], added: list[int], drops: bool) -> None:
    x = pt.tensor("x", shape=(None, 1 if drops else 2, None))
    new: list[int | str] = [axis for axis in order if not (drops and axis == 1)]
    for place in added:
        new.insert(place, "x")
    lengths = [2, 1 if drops else 2, 3]
    check([x], [x.dimshuffle(new), x.dimshuffle(new) + 1], [data_of(lengths)], rewrites=False)


def test_axes_that_cannot_be_dropped() -> None:
    x = pt.matrix("x")
    message = "DimShuffle: Attempting to squeeze axes with size not equal to one"
    for out in (x.dimshuffle(1), x.dimshuffle()):
        check_failure([x], [out + 1], [np.ones((2, 3))], ValueError, message)
    check([x], [x.dimshuffle() + 1], [np.ones((1, 1))])


# Diagonals


@given(
    st.tuples(*[st.sampled_from([0, 1, 2, 3, 5])] * 3),
    st.integers(-4, 4),
    st.sampled_from([(0, 1), (1, 0), (0, 2), (2, 1)]),
    st.booleans(),
    st.booleans(),
)
def test_diagonals(
    lengths: tuple[int, ...], offset: int, axes: tuple[int, int], is_view: bool, is_known: bool
) -> None:
    x = pt.tensor("x", shape=lengths if is_known else (None,) * 3)
    op = ExtractDiag(offset=offset, axis1=axes[0], axis2=axes[1], view=is_view)
    check([x], [op(x), op(x) * 2], [data_of(list(lengths))], rewrites=False)


def test_diagonals_in_a_rewritten_graph() -> None:
    x, v = pt.matrix("x"), pt.vector("v")
    outs = [pt.diagonal(x), pt.trace(x), pt.diag(v), pt.diag(v, 1)]
    check([x, v], outs, [data_of([3, 4]), np.arange(3.0)])


@pytest.mark.parametrize("dtype", ["complex64", "float16"])
def test_other_dtypes_are_refused(dtype: str) -> None:
    x = pt.matrix("x", dtype=dtype)
    for out in (x.T, x.ravel(), pt.diagonal(x), specify_shape(x, (2, None)), x.shape):
        assert lower.refusal(out.owner) == f"no dtype {dtype}"
