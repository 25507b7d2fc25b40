"""What a compiled function costs, in floating-point operations, by the lengths of a run."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from pytensor.compile.mode import Mode
from pytensor.link.basic import PerformLinker

# In Python, after which all that was computed is still there. What SciPy solves in place must not
# be written there, and kernels may not have more than 32 operands.
KEEPING = Mode(PerformLinker(allow_gc=False), "fast_run").excluding("fusion", "inplace")


def operations(function: Any, values: list[Any], results: list[Any]) -> float:
    """Return the operations of a function that was compiled in the mode `KEEPING`, after a run."""
    fgraph = function.maker.fgraph
    shapes = {
        variable: np.shape(cell[0])
        for variable, cell in function.vm.storage_map.items()
        if cell[0] is not None
    }
    shapes.update(zip(fgraph.inputs, map(np.shape, values), strict=True))
    shapes.update(zip(fgraph.outputs, map(np.shape, results), strict=True))
    return sum(_operations(node, shapes) for node in fgraph.apply_nodes)


def _operations(node: Any, shapes: dict[Any, tuple[int, ...]]) -> float:
    op = getattr(node.op, "core_op", node.op)
    name = type(op).__name__
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
    }
    return thirds[name] / 3 * _cube(shapes[node.inputs[0]]) if name in thirds else 0


def _cube(shape: tuple[int, ...]) -> int:
    return prod(shape) * shape[-1]
