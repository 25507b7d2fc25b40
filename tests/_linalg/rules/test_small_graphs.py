"""Rules make no more than a graph has a use for, and what needs no further pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.graph.basic import Constant
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.traversal import apply_ancestors
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.linalg import cholesky, det, slogdet

from pytensor_fuse._linalg.ops.cholesky_inverse import cholesky_inverse
from pytensor_fuse._linalg.rules.determinants import from_cholesky
from pytensor_fuse._linalg.structure.diagonal import diagonal_of, is_diagonal
from pytensor_fuse._linalg.structure.lengths import is_length_of
from pytensor_fuse._linalg.structure.matrices import with_axes


def _value(variable: Any, values: dict[Any, Any]) -> Any:
    return variable.eval(values, on_unused_input="ignore", mode="FAST_COMPILE")


@st.composite
def orders(draw: st.DrawFn, n: int) -> list[Any]:
    """Draw an order of axes: each once, with new ones among them."""
    order: list[Any] = list(draw(st.permutations(range(n))))
    for _ in range(draw(st.integers(0, 2))):
        order.insert(draw(st.integers(0, len(order))), "x")
    return order


@given(st.data())
def test_axes_are_moved_once(data):
    x = pt.dmatrix("x")
    first = data.draw(orders(2))
    second = data.draw(orders(len(first)))
    found = with_axes(x.dimshuffle(first), second)
    value = np.arange(6.0).reshape(2, 3)
    expected = x.dimshuffle(first).dimshuffle(second)
    np.testing.assert_array_equal(_value(found, {x: value}), _value(expected, {x: value}))
    assert found.type.broadcastable == expected.type.broadcastable
    assert sum(isinstance(node.op, DimShuffle) for node in apply_ancestors([found])) <= 1


@pytest.mark.parametrize("order", [(), ("x",), ("x", "x", "x")])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
def test_the_axes_of_numbers_are_moved_at_once(dtype, order):
    found = with_axes(pt.constant(np.full((1, 1), 3, dtype)), order)
    assert isinstance(found, Constant)
    assert found.type.dtype == dtype
    assert found.type.shape == (1,) * len(order)
    assert found.data.ravel()[0] == 3


@pytest.mark.parametrize(
    ("made", "also_itself"),
    [
        (lambda a: [slogdet(a)[1]], False),
        (lambda a: list(slogdet(a)), False),
        (lambda a: [slogdet(a)[1], det(a)], True),
        (lambda a: [slogdet(a)[1], pt.abs(det(a))], True),
        (lambda a: [pt.exp(det(a))], True),
    ],
)
def test_a_determinant_is_made_only_where_it_stays(made, also_itself):
    a = pt.dmatrix("a")
    fgraph = FunctionGraph([a], made(a), clone=False)
    dets = [node.outputs[0] for node in fgraph.toposort() if "Det" in str(node.op)]
    found: dict[Any, Any] = {}
    for one in dets:
        found.update(from_cholesky(fgraph, one, cholesky(a)))
    assert any(one in found for one in dets) == also_itself
    before = [_value(one, {a: np.diag([2.0, 3.0])}) for one in fgraph.outputs]
    fgraph.replace_all(list(found.items()), reason="test")
    assert also_itself or not any(one in fgraph.variables for one in dets)
    np.testing.assert_allclose(
        [_value(one, {a: np.diag([2.0, 3.0])}) for one in fgraph.outputs], before
    )


def test_the_length_of_an_inverse_is_that_of_an_identity_in_the_matrix():
    x, other = pt.dmatrix("x"), pt.dmatrix("other")
    n = x.shape[0]
    inverse = cholesky_inverse(cholesky(pt.exp(x @ x.T) + pt.eye(n)))
    assert is_length_of(n, inverse)
    assert is_length_of(n, 2.0 * inverse - x @ x.T)
    assert not is_length_of(other.shape[0], inverse)
    # A row is repeated.
    assert not is_length_of(n, cholesky_inverse(cholesky(other)) + pt.exp(x[:1]))


@pytest.mark.parametrize(
    "matrix",
    [
        lambda v, x: pt.diag(v),
        lambda v, x: pt.eye(3) * 2.0,
        lambda v, x: v * pt.eye(3) / 3.0,
        lambda v, x: (v[:, None] * pt.eye(3)).T,
        lambda v, x: pt.constant(np.diag([1.0, 2.0, 3.0])),
        lambda v, x: x * pt.eye(3),
        lambda v, x: 1.0 / pt.diag(v),
        lambda v, x: x,
        lambda v, x: pt.eye(3, k=1),
        lambda v, x: pt.constant(np.ones((3, 3))),
    ],
)
def test_whether_a_matrix_is_diagonal_is_whether_it_has_a_diagonal(matrix):
    v, x = pt.dvector("v"), pt.dmatrix("x")
    made = matrix(v, x)
    diagonal = diagonal_of(made)
    assert is_diagonal(made) == (diagonal is not None)
    if diagonal is not None:
        values = {v: np.array([1.0, 2.0, 4.0]), x: np.ones((3, 3))}
        [whole, entries] = [_value(one, values) for one in (made, diagonal)]
        np.testing.assert_array_equal(whole, np.diag(np.broadcast_to(entries, 3)))
