"""Gradients by the factors of a Kronecker product, without the gradient by the product.

PyTensor takes partial traces of ``G``, the gradient by ``kron(A, B)``. Each is the sum of the
partial traces of the summands of ``G``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.compile.builders import OpFromGraph
from pytensor.scalar.basic import Mul
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Sum
from pytensor.tensor.shape import Reshape

from pytensor_fuse._linalg.structure.kronecker import TracedOut
from pytensor_fuse._linalg.structure.matrices import is_real_matrix, scalar_op
from pytensor_fuse._linalg.structure.summands import structured_sum

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

# The axes of the sum, and the expanded axes of the other factor, in the order of rows and columns
# of the left factor and of the right one.
_LEFT = ((1, 3), ("x", 0, "x", 1))
_RIGHT = ((0, 2), (0, "x", 1, "x"))


def kronecker_gradient(fgraph: FunctionGraph, node: Apply[Any]) -> dict[Any, Any] | None:
    """Take the partial traces of a sum of matrices of known structure from its summands."""
    op = node.op
    # A subclass may have an implementation of its own beside the graph.
    if type(op) is not OpFromGraph:
        return None
    replacements: dict[Any, Any] = {}
    for old, inner in zip(node.outputs, op.fgraph.outputs, strict=True):
        if not fgraph.clients[old]:
            continue
        found = _traced(inner, op.fgraph.inputs, node.inputs)
        known = None if found is None else structured_sum(fgraph, found[0])
        if found is None or known is None:
            return None
        new = known.partial_trace(found[1])
        if new is None:
            return None
        replacements[old] = new
    return replacements


def _traced(
    inner: Any, inputs: Sequence[Any], given: Sequence[Any]
) -> tuple[Any, TracedOut] | None:
    """Return the matrix whose partial trace an output of an inner graph is, and the factor."""
    total = _unmoved(inner)
    if total is None or not _is_made_by(total, Sum):
        return None
    [product] = total.owner.inputs
    if not isinstance(scalar_op(product), Mul) or len(product.owner.inputs) != 2:
        return None
    outside = dict(zip(inputs, given, strict=True))
    for whole, factor in (product.owner.inputs, product.owner.inputs[::-1]):
        if not _is_made_by(whole, Reshape) or not _is_made_by(factor, DimShuffle):
            continue
        how = (tuple(total.owner.op.axis or ()), tuple(factor.owner.op.new_order))
        matrix, other = (outside.get(one.owner.inputs[0]) for one in (whole, factor))
        if how not in (_LEFT, _RIGHT) or matrix is None or other is None:
            continue
        n_left, n_right, *columns = whole.type.shape
        n = n_right if how == _LEFT else n_left
        is_square = [n_left, n_right] == columns and other.type.shape == (n, n)
        if is_square and is_real_matrix(matrix) and is_real_matrix(other) and n_left and n_right:
            return matrix, TracedOut(other, (n_left, n_right), how == _LEFT)
    return None


def _is_made_by(variable: Any, class_: type[Any]) -> bool:
    return variable.owner is not None and isinstance(variable.owner.op, class_)


def _unmoved(variable: Any) -> Any:
    """Return a matrix before its axes were expanded and squeezed; None if other axes moved."""
    order: tuple[Any, ...] = (0, 1)
    while _is_made_by(variable, DimShuffle):
        if "x" in (order := tuple(variable.owner.op.new_order[axis] for axis in order)):
            return None
        [variable] = variable.owner.inputs
    return variable if order == (0, 1) and variable.type.ndim == 2 else None
