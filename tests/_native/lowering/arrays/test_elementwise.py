"""Elemwise: broadcasting, lengths, several outputs."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.native.lowering import check, check_failure, text
from support.switching import switched


@st.composite
def operands(draw: st.DrawFn) -> tuple[list[tuple[int, ...]], list[tuple[int | None, ...]]]:
    """Draw shapes that broadcast, and the lengths that types state."""
    ndim = draw(st.integers(0, 3))
    lengths = [draw(st.sampled_from([0, 1, 2, 3, 5, 9])) for _ in range(ndim)]
    shapes, types = [], []
    for _ in range(draw(st.integers(1, 3))):
        shape, known = [], []
        for length in lengths:
            is_one = draw(st.booleans())
            shape.append(1 if is_one else length)
            # Only a length of 1 in the type broadcasts.
            known.append(1 if is_one else draw(st.sampled_from([None, length])))
        shapes.append(tuple(shape))
        types.append(tuple(known))
    return shapes, types


@given(operands())
def test_broadcasting(case: tuple[list[tuple[int, ...]], list[tuple[int | None, ...]]]) -> None:
    shapes, types = case
    inputs = [pt.tensor(f"x{i}", dtype="float64", shape=known) for i, known in enumerate(types)]
    values = [np.arange(np.prod(shape)).reshape(shape) + 0.5 * i for i, shape in enumerate(shapes)]
    out = inputs[0]
    for one in inputs[1:]:
        out = out * one - 1
    outs = [out] if out is not inputs[0] else [out + 1]
    check(inputs, outs, values, rewrites=False)


def test_rewritten_graph_with_several_outputs() -> None:
    x, y, n = pt.matrix("x"), pt.vector("y"), pt.ivector("n")
    outs = [pt.sqr(x) + y, pt.switch(n > y, x, 0.5), (x + y) * n, n + 1]
    values = [np.arange(6.0).reshape(2, 3), np.array([0.1, -0.0, 3]), np.array([1, -1, 2])]
    check([x, y, n], outs, values)


UNKNOWN_ONE = (
    "Incompatible vectorized shapes for input 1 and axis 0. Input 1 has shape 1, but is not "
    "statically known to have shape 1, and thus not broadcastable."
)
OTHER = "Vectorized input 1 has an incompatible shape in axis {}."


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        ((2, 3), (1, 3), UNKNOWN_ONE),
        ((2, 3), (2, 4), OTHER.format(1)),
        ((1, 3), (2, 3), OTHER.format(0)),
    ],
)
def test_shapes_that_do_not_match(
    one: tuple[int, ...], other: tuple[int, ...], message: str
) -> None:
    x, y = pt.matrices("xy")
    check_failure([x, y], [x + y], [np.ones(one), np.ones(other)], ValueError, message)


def test_messages_do_not_count_the_numbers_of_kernels() -> None:
    """PyTensor passes values that all elements share to kernels as numbers, not as arrays."""
    x, y, z = pt.vectors("xyz")
    m = pt.matrix("m")
    values = [np.ones(2), np.ones(3), np.ones(4)]
    given = [
        ([x, y, z], x * z.sum() + y, values),
        ([x, y, z], (pt.exp(x * z.sum()) + y).sum(), values),
        ([m, y, z], pt.exp(z.sum() * m) * z.prod() + y, [np.ones((2, 2)), *values[1:]]),
        ([m, y, z], pt.exp(z[0] * m) - pt.sin(y)[:, None], [np.ones((2, 2)), *values[1:]]),
    ]
    for inputs, out, arrays in given:
        told = []
        for native in (True, False):
            with switched(native=native):
                function = pytensor.function(inputs, out, mode="NUMBA")
            with pytest.raises(ValueError, match="Vectorized input") as raised:
                function(*arrays)
            told.append(str(raised.value).partition("\n")[0])
        assert told[0] == told[1]


def test_a_length_is_checked_once() -> None:
    x, y = pt.vectors("xy")
    program = text([x, y], [(x + y) * pt.exp(y) - x])
    assert program.count("check") == 2
