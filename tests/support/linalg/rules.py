"""Graphs with work on matrices, compiled with the feature `linalg` and by stock PyTensor."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytensor
from pytensor.compile.mode import Mode

import pytensor_fuse
from support.effort import IS_DEEP
from support.switching import switched

PYTHON = Mode("py", "fast_run")

# For rules that use none of this package's ops: Numba takes half a minute to compile PyTensor's
# ops.
OTHER_BACKENDS = ["NUMBA", "CVM"] if IS_DEEP else ["CVM"]


# PyTensor's fused reciprocals in Python are those of 32-bit floats, and SciPy 1.18's in-place
# solutions must not be written to.
ORACLE = PYTHON.excluding("inplace", "fusion")


def compile_both(inputs, outputs, mode=PYTHON, stock_mode=None):
    """Return the function with the feature alone, and stock PyTensor's.

    Stock may have a mode that compiles faster: Numba's compilation takes most of a test.
    """
    ours = compile_ours(inputs, outputs, mode)
    return ours, compile_stock(inputs, outputs, stock_mode or mode)


def compile_ours(inputs, outputs, mode):
    with pytensor_fuse.enabled(False), switched(**only_linalg()):
        return pytensor.function(inputs, outputs, mode=mode, on_unused_input="ignore")


def compile_stock(inputs, outputs, mode):
    with pytensor_fuse.enabled(False):
        return pytensor.function(inputs, outputs, mode=mode, on_unused_input="ignore")


def only_linalg():
    names = pytensor_fuse.status()
    return {name: name == "linalg" for name in names}


def cubic(function):
    """Return how often each op does work that grows with the cube of the size."""
    work = pytensor_fuse.audit(function).matrices.work
    return Counter(one.op for one in work if one.order == 3)


# In thirds of n ** 3: without right-hand sides, and with a matrix of them.
THIRDS = {
    "Cholesky": (1, 1),
    "LUFactor": (2, 2),
    "Det": (2, 2),
    "CholeskyInverse": (2, 2),
    "LUInverse": (4, 4),
    "MatrixInverse": (6, 6),
    "Solve": (2, 8),
    "SolveTriangular": (0, 3),
    "CholeskySolve": (0, 6),
    "Dot": (0, 6),
    "Dot22": (0, 6),
}


def estimated(function):
    """Return the operations of cubic work, in thirds of the cube of the size."""
    total = 0
    for node in function.maker.fgraph.apply_nodes:
        name = type(getattr(node.op, "core_op", node.op)).__name__
        if name not in THIRDS:
            continue
        alone, with_matrix = THIRDS[name]
        has_matrix = not any(any(i.type.broadcastable) or i.type.ndim < 2 for i in node.inputs)
        total += with_matrix if has_matrix else alone
    return total


def solved_columns(function):
    """Return the number of right-hand sides of each solve with a matrix of them, if known."""
    nodes = [node for node in function.maker.fgraph.toposort() if "Solve" in str(node.op)]
    return [node.inputs[1].type.shape[-1] for node in nodes if node.inputs[1].type.ndim == 2]


def check(inputs, outputs, values, mode=PYTHON, rtol=1e-9, stock_mode=None, more=()):
    """Compare both, and return the cubic work of ours and of stock's.

    ``more`` are further values for the same compiled functions.
    """
    stock = compile_stock(inputs, outputs, stock_mode or mode)
    # Called before ours is compiled: PyTensor 3.0 overwrites the inner graphs that Numba compiles.
    calls = [(given, stock(*given)) for given in (values, *more)]
    ours = compile_ours(inputs, outputs, mode)
    for given, expected in calls:
        for mine, theirs in zip(ours(*given), expected, strict=True):
            atol = 1e-11 * (1 + np.abs(theirs).max())
            np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=atol)
    mine, theirs = cubic(ours), cubic(stock)
    # A solve with a matrix counts as one, its factorization and two triangular solves as three.
    grown = sum(mine.values()) > sum(theirs.values())
    assert not grown or estimated(ours) <= estimated(stock)
    return mine, theirs


def positive_definite(n, seed=0):
    rng = np.random.default_rng(seed)
    square = rng.normal(size=(n, n))
    return square @ square.T / n + np.eye(n)
