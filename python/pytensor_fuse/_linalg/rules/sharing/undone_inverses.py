"""What undoes an inverse needs the matrix only, not the inverse.

PyTensor sees that, too, but later than this package looks for work on matrices of known structure:
by then the inverse would be made of parts, and not be recognized as one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytensor.tensor as pt
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.tensor.linalg.inverse import MatrixInverse
from pytensor.tensor.linalg.solvers.general import Solve
from pytensor.tensor.linalg.summary import Det, det

from pytensor_fuse._linalg.rules.determinants import of_uses
from pytensor_fuse._linalg.structure.free_factors import is_free_factor, scales_of
from pytensor_fuse._linalg.structure.matrices import core_of, is_real_matrix, without_transposes

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

# PyTensor's annotations allow for what it never returns.
_det: Any = det


def undone_inverse(fgraph: FunctionGraph, node: Apply[Any]) -> dict[Any, Any] | None:
    """Invert, solve with or take the determinant of the matrix that an inverse is of."""
    core = core_of(node)
    if type(core) not in (MatrixInverse, Solve, Det):
        return None
    matrix = _inverted(node.inputs[0])
    # PyTensor has closed forms of their inverses.
    if matrix is None or is_free_factor(fgraph, matrix):
        return None
    [old] = node.outputs
    if type(core) is Det:
        determinant = _det(matrix)
        found = of_uses(
            fgraph,
            old,
            lambda: pt.reciprocal(determinant),
            lambda: pt.sign(determinant),
            lambda: -pt.log(pt.abs(determinant)),
        )
    elif type(core) is MatrixInverse:
        found = {old: matrix}
    else:
        product = _product(fgraph, matrix, node.inputs[1], core.b_ndim)
        found = {} if product is None else {old: product}
    if not found or any(before.type.dtype != after.type.dtype for before, after in found.items()):
        return None
    for before, after in found.items():
        copy_stack_trace(before, after)
    return found


def _product(fgraph: FunctionGraph, matrix: Any, right: Any, b_ndim: int) -> Any:
    """Return the product with a vector or matrix; None for a batch, and where PyTensor has less."""
    if right.type.ndim != b_ndim:
        return None
    if not is_free_factor(fgraph, right):
        return pt.dot(matrix, right)
    scales = scales_of(fgraph, right)
    if scales is None:
        return None
    if scales.type.ndim:
        return matrix * scales[None, :]
    # A number does not show how many rows there are.
    sizes = {*matrix.type.shape, *right.type.shape}
    return matrix * scales if len(sizes) == 1 and None not in sizes else None


def _inverted(inverse: Any) -> Any:
    """Return the matrix that one is the inverse of; None if it is none."""
    if not is_real_matrix(inverse):
        return None
    inverse, turned = without_transposes(inverse)
    if type(core_of(inverse.owner)) is not MatrixInverse:
        return None
    matrix: Any = inverse.owner.inputs[0]
    return matrix.T if turned else matrix
