"""Diagonal matrices added to others."""

import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import get_mode
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.basic import AllocDiag, Eye
from pytensor.tensor.linalg.decomposition.lu import lu_factor

from pytensor_fuse._linalg.rules.products.diagonal_terms import diagonal_added_in_place
from support.linalg.rules import PYTHON, compile_both, positive_definite

N = 5
A = pt.dmatrix("A")
V = pt.dvector("v")
C = pt.dscalar("c")
VALUES = [positive_definite(N), np.arange(1.0, N + 1), 0.3]
EYE = pt.eye(A.shape[0])

ADDED = {
    "identity": A + EYE,
    "multiple": pt.exp(A) + C**2 * EYE,
    "column": A + V[:, None] * EYE * C,
    "row": A + V * EYE,
    "diagonal": A + pt.diag(V),
    "twice": A + C * EYE + 2 * pt.diag(V),
    "onto another": A + A.T + C * EYE,
}
LEFT = {
    "alone": C * EYE,
    "product of matrices": A @ A + A * EYE,
    "beside the diagonal": A + pt.eye(A.shape[0], k=1),
    "to a column": V[:, None] + EYE,
}


def is_made(function):
    return any(isinstance(node.op, Eye | AllocDiag) for node in function.maker.fgraph.apply_nodes)


def compare(outputs, mode=PYTHON):
    ours, stock = compile_both([A, V, C], outputs, mode, PYTHON)
    for mine, theirs in zip(ours(*VALUES), stock(*VALUES), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-14)
    return ours


@pytest.mark.parametrize("mode", ["NUMBA", "CVM"])
def test_added(mode):
    assert not is_made(compare(list(ADDED.values()), get_mode(mode)))


@pytest.mark.parametrize("name", ADDED)
def test_each_is_added(name):
    assert not is_made(compare([ADDED[name]]))


@pytest.mark.parametrize("name", LEFT)
def test_left_alone(name):
    assert is_made(compare([LEFT[name]]))


def test_other_types():
    small = pt.fmatrix("small")
    outputs = [small + pt.eye(small.shape[0], dtype="int8"), small + 2 * pt.eye(small.shape[0])]
    ours, stock = compile_both([small], outputs)
    value = VALUES[0].astype("float32")
    for mine, theirs in zip(ours(value), stock(value), strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)


def test_nodes_of_two_outputs_are_left_alone():
    packed, pivots = lu_factor(A + EYE)
    fgraph = FunctionGraph([A], [packed, pivots], clone=False)
    assert diagonal_added_in_place(fgraph, packed.owner) is None
