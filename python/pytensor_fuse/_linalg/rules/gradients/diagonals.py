"""The gradient by a diagonal of a matrix, from the diagonals of the terms of the gradient.

PyTensor takes it from the gradient by the matrix, although sums and elementwise products of outer
products and matrix products need only their diagonals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytensor.tensor as pt
from pytensor.tensor.math import Dot
from pytensor.tensor.shape import SpecifyShape

from pytensor_fuse._linalg.structure.lengths import diagonal_of_length
from pytensor_fuse._linalg.structure.matrices import core_of, scalar_op, transpose_of
from pytensor_fuse._linalg.structure.taken_diagonals import Taken, diagonal_taken

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

# The depth of sums and products that is searched.
_DEPTH: Final = 12


def diagonal_of_gradient(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Take the diagonal of each term of a sum or product, instead of that of the whole."""
    taken = diagonal_taken(node)
    if taken is None:
        return None
    whole = node.inputs[2]
    # Any other use needs the whole matrix.
    if not _has_only_diagonals_taken(fgraph, whole):
        return None
    new = _part(whole, taken, _DEPTH)
    return _of_type(node, new)


def _has_only_diagonals_taken(fgraph: FunctionGraph, whole: Any) -> bool:
    for client, _ in fgraph.clients[whole]:
        if not client.outputs:
            return False
        # Diagonals of known lengths make the shape of the matrix known.
        if isinstance(client.op, SpecifyShape):
            if not _has_only_diagonals_taken(fgraph, client.outputs[0]):
                return False
        elif diagonal_taken(client) is None:
            return False
    return True


def gradient_of_diagonal_matrix(_: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Take the diagonal of a gradient directly, without the matrix as a second operand."""
    taken = diagonal_taken(node)
    if taken is None or taken.offset != 0:
        return None
    known = node.inputs[0].type.shape[0]
    rows = taken.length if known is None else pt.constant(known)
    return _of_type(node, diagonal_of_length(node.inputs[2], rows))


def _of_type(node: Apply[Any], new: Any) -> list[Any] | None:
    return [new] if new.type.broadcastable == node.outputs[0].type.broadcastable else None


def _part(variable: Any, taken: Taken, depth: int) -> Any:
    """Return the diagonal of a matrix, of length 1 if it is constant."""
    short = variable.type.broadcastable
    if short == (True, True):
        return variable.dimshuffle(0)
    if short == (False, True):
        return taken.of_rows(variable.dimshuffle(0))
    if short == (True, False):
        return taken.turned().of_rows(variable.dimshuffle(1))
    node = variable.owner
    if node is None or depth == 0:
        return pt.diagonal(variable, offset=taken.offset)
    inner = transpose_of(variable)
    if inner is not None:
        return _part(inner, taken.turned(), depth - 1)
    if isinstance(node.op, SpecifyShape):
        return _part(node.inputs[0], taken, depth - 1)
    if isinstance(core_of(node), Dot):
        left: Any
        right: Any
        left, right = node.inputs
        rows, columns = taken.of_rows(left), taken.turned().of_rows(right.T)
        return (rows * columns).sum(axis=1)
    if scalar_op(variable) is not None and len(node.outputs) == 1:
        return node.op(*(_part(one, taken, depth - 1) for one in node.inputs))
    return pt.diagonal(variable, offset=taken.offset)
