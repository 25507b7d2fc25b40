"""Costs of a compiled function, in floating-point operations, from the lengths of a run."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np
from pytensor.compile.mode import Mode
from pytensor.link.basic import PerformLinker

# A mode in Python that keeps all intermediate results. SciPy's in-place solutions must not
# overwrite them, and kernels may not have more than 32 operands.
KEEPING = Mode(PerformLinker(allow_gc=False), "fast_run").excluding("fusion", "inplace")

# The same, with the usual kernels of a function.
FUSED = Mode(PerformLinker(allow_gc=False), "fast_run").excluding("inplace")

# Costs of an element and of a node, in operations: an element is written and read at gigabytes per
# second, and a call of a node takes a large part of a microsecond.
_ELEMENT = 6
_NODE = 100

_CUBIC = ("Dot", "Gemm", "Cholesky", "LU", "Solve", "Inverse", "Det", "Eig", "SVD", "QR", "Pinv")


class Work(NamedTuple):
    """The cost of a function.

    Attributes
    ----------
    operations
        All floating-point operations.
    of_matrices
        The operations of factorizations, solves, inverses and products.
    built
        The number of elements of all arrays that nodes fill.
    nodes
        The number of nodes with an output of more than one element.
    """

    operations: float
    of_matrices: float
    built: int
    nodes: int

    @property
    def time(self) -> float:
        """Return the time of a call, as a number of operations."""
        return self.operations + _ELEMENT * self.built + _NODE * self.nodes


def work_of(function: Any, values: list[Any], results: list[Any]) -> Work:
    """Return the work of a function that was compiled in the mode `FUSED`, after a run."""
    shapes = _shapes(function, values, results)
    nodes = function.maker.fgraph.apply_nodes
    by_node = {node: _operations(node, shapes) for node in nodes}
    filled = [
        shapes.get(out, ())
        for node in nodes
        for at, out in enumerate(node.outputs)
        if at not in node.op.view_map
    ]
    many = [n for n in nodes if any(prod(shapes.get(one, (2,))) > 1 for one in n.outputs)]
    return Work(
        sum(by_node.values()),
        sum(done for node, done in by_node.items() if any(name in _name(node) for name in _CUBIC)),
        sum(map(prod, filled)),
        len(many),
    )


def operations(function: Any, values: list[Any], results: list[Any]) -> float:
    """Return the operations of a function that was compiled in the mode `KEEPING`, after a run."""
    shapes = _shapes(function, values, results)
    return sum(_operations(node, shapes) for node in function.maker.fgraph.apply_nodes)


def _shapes(function: Any, values: list[Any], results: list[Any]) -> dict[Any, tuple[int, ...]]:
    fgraph = function.maker.fgraph
    shapes = {
        variable: np.shape(cell[0])
        for variable, cell in function.vm.storage_map.items()
        if cell[0] is not None
    }
    shapes.update(zip(fgraph.inputs, map(np.shape, values), strict=True))
    shapes.update(zip(fgraph.outputs, map(np.shape, results), strict=True))
    return shapes


def _name(node: Any) -> str:
    return type(getattr(node.op, "core_op", node.op)).__name__


def _operations(node: Any, shapes: dict[Any, tuple[int, ...]]) -> float:
    op = getattr(node.op, "core_op", node.op)
    name = _name(node)
    made = shapes.get(node.outputs[0], ())
    if name == "Elemwise":
        return prod(made)
    if name in ("Sum", "Prod", "All"):
        return prod(shapes[node.inputs[0]])
    if name in ("Dot", "Dot22", "Dot22Scalar", "BatchedDot"):
        left = shapes[node.inputs[0]]
        return 2 * prod(made) * (left[-1] if left else 1)
    if name == "Gemm":
        return 2 * prod(made) * shapes[node.inputs[2]][-1]
    if name in ("Gemv", "CGemv"):
        return 2 * prod(shapes[node.inputs[2]])
    if name in ("Ger", "CGer"):
        return 2 * prod(made)
    if name == "Eigh":
        return 9 * _cube(shapes[node.inputs[0]])
    if name in ("SolveTriangular", "CholeskySolve", "Solve"):
        matrix, right = (shapes[one] for one in node.inputs[:2])
        columns = right[-1] if op.b_ndim == 2 else 1
        stack = max(prod(matrix[:-2]), prod(right[: -op.b_ndim]))
        passes = 1 if name == "SolveTriangular" else 2
        solved = passes * stack * matrix[-1] ** 2 * columns
        if name == "Solve" and op.assume_a == "tridiagonal":
            return 17 * stack * matrix[-1] * columns
        factorized = {"pos": 1 / 3}.get(op.assume_a, 2 / 3) if name == "Solve" else 0
        return solved + factorized * _cube(matrix)
    thirds = {
        "Cholesky": 1,
        "LUFactor": 2,
        "LU": 2,
        "Det": 2,
        "SLogDet": 2,
        "CholeskyInverse": 2,
        "LUInverse": 2 if getattr(op, "symmetric", False) else 4,
        "MatrixInverse": 6,
        "QR": 4,
        "Eigvalsh": 4,
        "SVD": 60,
        "MatrixPinv": 60,
        "Eig": 75,
        "Schur": 75,
    }
    return thirds[name] / 3 * _cube(shapes[node.inputs[0]]) if name in thirds else 0


def _cube(shape: tuple[int, ...]) -> int:
    return prod(shape) * shape[-1]
