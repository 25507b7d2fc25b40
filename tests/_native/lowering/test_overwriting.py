"""Routines overwrite arrays if their ops may: random graphs that read the arrays again."""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.compile.io import In
from pytensor.tensor.linalg.decomposition.cholesky import Cholesky
from pytensor.tensor.linalg.inverse import MatrixInverse
from pytensor.tensor.linalg.solvers.general import Solve
from pytensor.tensor.linalg.solvers.psd import CholeskySolve
from pytensor.tensor.linalg.solvers.triangular import SolveTriangular

from pytensor_fuse._linalg.ops.cholesky_inverse import CholeskyInverse
from support.native.functions import native_function, stock_function
from support.native.linalg import definite, right_side
from support.native.lowering import check

N = 4


def _definite(x):
    bounded = pt.tanh(x)
    return pt.dot(bounded, bounded.T) + 3 * pt.eye(N)


#: Functions of two matrices. Any matrix will do, as each step makes it suitable first.
STEPS = {
    "sum": lambda x, y: x + y,
    "outer product": lambda x, y: pt.dot(x[:, :1], y[:1, :]),
    "product": lambda x, y: pt.dot(pt.tanh(x), y),
    "transpose": lambda x, _: x.T,
    "reversed": lambda x, _: x[::-1],
    "with a row": lambda x, y: pt.set_subtensor(x[1], y[2]),
    "factor": lambda x, _: Cholesky()(_definite(x)),
    "upper factor": lambda x, _: Cholesky(lower=False)(_definite(x)),
    "factor of the transpose": lambda x, _: Cholesky()(_definite(x).T),
    "inverse": lambda x, _: MatrixInverse()(_definite(x)),
    "inverse of factor": lambda x, _: CholeskyInverse()(Cholesky()(_definite(x))),
    "solution": lambda x, y: Solve(b_ndim=2)(_definite(x), y),
    "symmetric": lambda x, y: Solve(b_ndim=2, assume_a="sym")(_definite(x), y),
    "definite": lambda x, y: Solve(b_ndim=2, assume_a="pos")(_definite(x).T, y.T),
    "triangular": lambda x, y: SolveTriangular(b_ndim=2)(_definite(x), y),
    "with a factor": lambda x, y: CholeskySolve(b_ndim=2)(Cholesky()(_definite(x)), y),
}

places = st.integers(0, 7)
steps = st.lists(st.tuples(st.sampled_from(list(STEPS)), places, places), min_size=1, max_size=6)


@given(steps, st.lists(places, min_size=1, max_size=3), st.sampled_from([[], [0], [0, 1]]))
def test_random_graphs(taken, given_back, destroyed):
    inputs = [pt.tensor(name, dtype="float64", shape=(N, N)) for name in "xy"]
    known = list(inputs)
    for name, one, other in taken:
        known.append(STEPS[name](known[one % len(known)], known[other % len(known)]))
    outputs = [known[-1]]
    outputs += [known[place % len(known)] + 1 for place in given_back]
    values = [right_side(N, N, seed, "float64") for seed in (0, 1)]
    check(inputs, outputs, values, destroyed=destroyed, rtol=1e-7)


@pytest.mark.parametrize("is_mutable", [False, True])
def test_inputs_of_functions(is_mutable):
    x, b = pt.dmatrix("x"), pt.dmatrix("b")
    factor = pt.linalg.cholesky(x)
    outputs = [pt.linalg.solve_triangular(factor, b, lower=True), b.sum(), x[::-1] * 2]
    given_inputs = [In(x, mutable=is_mutable), In(b, mutable=is_mutable)]
    function = native_function(given_inputs, outputs)
    stock = stock_function([x, b], outputs)
    for n in (1, 5, 20):
        values = definite(n, 0, "float64"), right_side(n, 3, 0, "float64")
        before = [one.copy() for one in values]
        expected = stock(*values)
        for one, other in zip(function(*values), expected, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-12)
        if not is_mutable:
            assert all(
                np.array_equal(one, other) for one, other in zip(values, before, strict=True)
            )
