"""The gradient by a diagonal of a matrix is made of the diagonals of what the whole is made of.

PyTensor takes it from the gradient by the matrix. A sum or an elementwise product of outer products
and products need not be made whole for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Constant
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.scalar.basic import Add
from pytensor.tensor.basic import AllocDiag, ARange
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Dot
from pytensor.tensor.shape import Shape, SpecifyShape
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from pytensor_fuse._linalg.lengths import diagonal_of_length
from pytensor_fuse._linalg.matrices import (
    core_of,
    counts_from_zero,
    long_axes,
    scalar_op,
    transpose_of,
)

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

# How deep sums and products are looked through.
_DEPTH: Final = 12


class Taken(NamedTuple):
    """A diagonal, by its length and its offset."""

    length: Any
    offset: int

    def turned(self) -> Taken:
        """Return the same diagonal of the transpose."""
        return self._replace(offset=-self.offset)

    def of_rows(self, vector: Any) -> Any:
        """Return the elements of a vector, one for each row, that belong to the diagonal."""
        start = max(0, -self.offset)
        return vector[start : start + self.length]


def diagonal_of_gradient(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Take the diagonal of each term of a sum or product, instead of that of the whole."""
    taken = diagonal_taken(node)
    if taken is None:
        return None
    whole = node.inputs[2]
    # What else needs the whole has it made.
    if not _has_only_diagonals_taken(fgraph, whole):
        return None
    new = _part(whole, taken, _DEPTH)
    return _in_place_of(node, new)


def _has_only_diagonals_taken(fgraph: FunctionGraph, whole: Any) -> bool:
    for client, _ in fgraph.clients[whole]:
        if not client.outputs:
            return False
        # Diagonals of known lengths make a matrix of known size.
        if isinstance(client.op, SpecifyShape):
            if not _has_only_diagonals_taken(fgraph, client.outputs[0]):
                return False
        elif diagonal_taken(client) is None:
            return False
    return True


def gradient_of_diagonal_matrix(_: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Take the diagonal of a gradient as such, not by a function that is given the matrix, too."""
    taken = diagonal_taken(node)
    if taken is None or taken.offset != 0:
        return None
    known = node.inputs[0].type.shape[0]
    rows = taken.length if known is None else pt.constant(known)
    return _in_place_of(node, diagonal_of_length(node.inputs[2], rows))


def _in_place_of(node: Apply[Any], new: Any) -> list[Any] | None:
    """Return what replaces the output of a node, if it is of the same type."""
    [old] = node.outputs
    if new.type.dtype != old.type.dtype or new.type.broadcastable != old.type.broadcastable:
        return None
    copy_stack_trace(old, new)
    return [new]


def diagonal_taken(node: Apply[Any]) -> Taken | None:
    """Return which diagonal of its last input a node takes, if it is the gradient of AllocDiag."""
    if type(node.op) is not OpFromGraph or len(node.inputs) != 3 or len(node.outputs) != 1:
        return None
    vector, matrix, whole = node.inputs
    if matrix.owner is None or not isinstance(matrix.owner.op, AllocDiag):
        return None
    if matrix.owner.inputs[0] is not vector or vector.type.ndim != 1 or whole.type.ndim != 2:
        return None
    inside, _, inner = node.op.fgraph.inputs
    element = node.op.fgraph.outputs[0].owner
    if element is None or not isinstance(element.op, AdvancedSubtensor):
        return None
    of, *indices = element.inputs
    if of is not inner or tuple(getattr(element.op, "idx_list", ())) != (0, 1):
        return None
    starts = [_start(index, inside) for index in indices]
    offset = matrix.owner.op.offset
    if starts != [max(0, -offset), max(0, offset)]:
        return None
    return Taken(vector.shape[0], offset)


def _start(index: Any, vector: Any) -> int | None:
    """Return from where an index counts, as far as a vector is long; None if it does not."""
    start = 0
    if isinstance(scalar_op(index), Add):
        counting = [one for one in index.owner.inputs if long_axes(one)]
        others = [_number(one) for one in index.owner.inputs if not long_axes(one)]
        if len(counting) != 1 or None in others:
            return None
        index, start = counting[0], sum(one for one in others if one is not None)
    node = index.owner
    if node is None or not isinstance(node.op, ARange) or not counts_from_zero(index):
        return None
    last = node.inputs[1]
    if isinstance(last, Constant):
        return start if int(last.data) == vector.type.shape[0] else None
    length = last.owner
    if length is None or not isinstance(length.op, Subtensor):
        return None
    shape = length.inputs[0].owner
    is_its = shape is not None and isinstance(shape.op, Shape) and shape.inputs[0] is vector
    return start if is_its else None


def _number(variable: Any) -> int | None:
    while variable.owner is not None and isinstance(variable.owner.op, DimShuffle):
        [variable] = variable.owner.inputs
    return int(variable.data.item()) if isinstance(variable, Constant) else None


def _part(variable: Any, taken: Taken, depth: int) -> Any:
    """Return the diagonal of a matrix, with length 1 if all elements of it are one number."""
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
