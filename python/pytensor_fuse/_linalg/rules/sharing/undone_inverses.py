"""Inverses, solves and determinants of an inverse, from the matrix itself.

PyTensor has such rules, too, but they run after the rules for matrices of known structure, which
replace an inverse by parts that hide it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytensor.tensor as pt
from pytensor.tensor.linalg.inverse import MatrixInverse
from pytensor.tensor.linalg.solvers.general import Solve
from pytensor.tensor.linalg.summary import Det, det

from pytensor_fuse._linalg.rules.determinants import of_uses
from pytensor_fuse._linalg.structure.free_factors import is_free_factor, scales_of
from pytensor_fuse._linalg.structure.matrices import core_of, is_real_matrix, without_transposes

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

# PyTensor's annotation is wider than the results.
_det: Any = det


def undone_inverse(fgraph: FunctionGraph, node: Apply[Any]) -> dict[Any, Any] | None:
    """Replace the inverse, a solve or the determinant of an inverse by work on the matrix."""
    core = core_of(node)
    if type(core) not in (MatrixInverse, Solve, Det):
        return None
    matrix = _inverted(node.inputs[0])
    # PyTensor has closed forms for these.
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
    return found


def _product(fgraph: FunctionGraph, matrix: Any, right: Any, b_ndim: int) -> Any:
    """Return the product with a vector or matrix; None for a batch, and if PyTensor needs less."""
    if right.type.ndim != b_ndim:
        return None
    if not is_free_factor(fgraph, right):
        return pt.dot(matrix, right)
    scales = scales_of(fgraph, right)
    if scales is None:
        return None
    if scales.type.ndim:
        return matrix * scales[None, :]
    # A number does not show the size.
    sizes = {*matrix.type.shape, *right.type.shape}
    return matrix * scales if len(sizes) == 1 and None not in sizes else None


def _inverted(inverse: Any) -> Any:
    """Return the matrix whose inverse a matrix is; None for other matrices."""
    if not is_real_matrix(inverse):
        return None
    inverse, turned = without_transposes(inverse)
    if type(core_of(inverse.owner)) is not MatrixInverse:
        return None
    matrix: Any = inverse.owner.inputs[0]
    return matrix.T if turned else matrix
