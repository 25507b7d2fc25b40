"""The ops of this package for diagonals are kept from JAX, which does not know them."""

import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import JAX
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.linalg import inv, slogdet, solve

import pytensor_fuse
from support.linalg.rules import PYTHON, only_linalg
from support.switching import switched

D, E, F, Y = pt.dvectors("d", "e", "f", "y")
MATRICES = {
    "Tridiagonal": pt.diag(D) + pt.diag(E, 1) + pt.diag(F, -1),
    "Banded": pt.diag(D) + pt.diag(E, 2) + pt.diag(F, -1),
}


@pytest.mark.parametrize(("mode", "has_ops"), [(JAX, False), (PYTHON, True)])
@pytest.mark.parametrize("name", MATRICES)
def test_jax_gets_no_ops_that_it_does_not_know(name, mode, has_ops):
    matrix = MATRICES[name]
    outputs = [solve(matrix, Y), *slogdet(matrix), inv(matrix)]
    graph = FunctionGraph([D, E, F, Y], outputs, clone=True)
    with pytensor_fuse.enabled(False), switched(**only_linalg()):
        mode.optimizer.rewrite(graph)
    assert any(name in str(node.op) for node in graph.apply_nodes) == has_ops
