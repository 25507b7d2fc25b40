"""Diagonals that the gradient of `AllocDiag` takes of a matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Constant
from pytensor.scalar.basic import Add
from pytensor.tensor.basic import AllocDiag, ARange
from pytensor.tensor.shape import Shape
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from pytensor_fuse._linalg.structure.matrices import counts_from_zero, long_axes, scalar_op
from pytensor_fuse._linalg.structure.signs import whole_number_of

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply


class Taken(NamedTuple):
    """A diagonal, by its length and its offset."""

    length: Any
    offset: int

    def turned(self) -> Taken:
        """Return the same diagonal of the transpose."""
        return self._replace(offset=-self.offset)

    def of_rows(self, vector: Any) -> Any:
        """Return the elements of a vector with one element per row that belong to the diagonal."""
        start = max(0, -self.offset)
        return vector[start : start + self.length]


def diagonal_taken(node: Apply[Any]) -> Taken | None:
    """Return the diagonal of its last input that a gradient of `AllocDiag` takes; else None."""
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
    """Return the start of an index that counts over the length of a vector; else None."""
    start = 0
    if isinstance(scalar_op(index), Add):
        counting = [one for one in index.owner.inputs if long_axes(one)]
        others = [whole_number_of(one) for one in index.owner.inputs if not long_axes(one)]
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
