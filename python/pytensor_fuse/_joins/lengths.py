"""Sources of the lengths of a variable's dimensions, read without computing the variable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.tensor.basic import Alloc, AllocEmpty
from pytensor.tensor.blas import Gemv
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.shape import Shape_i

from pytensor_fuse._joins.ops.layout import Length, dim_length, static_length, value_length
from pytensor_fuse._pytensor.ops.versions_of_ops import assigns, takes_along_first

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.graph.basic import Apply, Variable

# The number of nodes through which the search for a length goes upwards.
_MAX_STEPS = 64


def lengths_of(variable: Variable[Any, Any]) -> tuple[Length[Variable[Any, Any]], ...]:
    """Return the source of the length of each dimension."""
    return tuple(length_of(variable, d) for d in range(variable.type.ndim))


def length_of(variable: Variable[Any, Any], dim: int) -> Length[Variable[Any, Any]]:
    """Return a source of the length of a dimension that does not need ``variable``.

    For an Elemwise, any operand that is not broadcast along the dimension serves: the kernel itself
    fails if the lengths differ. Inputs of the graph are preferred, since they are available from
    the start, then operands that are not indexed, so that PyTensor can still merge the indexing
    into the kernel.
    """
    for _ in range(_MAX_STEPS):
        static = variable.type.shape[dim]
        if static is not None:
            return static_length(static)
        node = variable.owner
        if node is None:
            break
        if isinstance(node.op, Elemwise):
            operands = [v for v in node.inputs if not v.type.broadcastable[dim]]
            if not operands:
                break
            variable = min(operands, key=_rank)
        elif isinstance(node.op, DimShuffle):
            [variable] = node.inputs
            # A dimension that the op adds has a static length.
            dim = int(node.op.new_order[dim])
        elif _is_take(node):
            variable, dim = (node.inputs[1], 0) if dim == 0 else (node.inputs[0], dim)
        elif assigns(node.op):
            variable = node.inputs[0]
        elif isinstance(node.op, CAReduce):
            [variable] = node.inputs
            reduced = range(variable.type.ndim) if node.op.axis is None else node.op.axis
            dim = [d for d in range(variable.type.ndim) if d not in reduced][dim]
        elif isinstance(node.op, Gemv):
            variable = node.inputs[0]
        elif isinstance(node.op, Alloc | AllocEmpty):
            given = node.inputs[dim + isinstance(node.op, Alloc)]
            if _is_length(given):
                variable, dim = given.owner.inputs[0], given.owner.op.i
            elif given.type.dtype == "int64":
                return value_length(given)
            else:
                break
        else:
            break
    return dim_length(variable, dim)


def n_elements(shape: Sequence[int | None]) -> int | None:
    """Return the number of elements of an array of this shape; None if a length is unknown."""
    total = 1
    for length in shape:
        if length is None:
            return None
        total *= length
    return total


def _is_length(variable: Variable[Any, Any]) -> bool:
    return variable.owner is not None and isinstance(variable.owner.op, Shape_i)


def _rank(variable: Variable[Any, Any]) -> int:
    if variable.owner is None:
        return 0
    return 2 if _is_take(variable.owner) else 1


def _is_take(node: Apply[Any]) -> bool:
    """Return whether a node is ``x[index]`` with a vector of positions as the index."""
    return (
        takes_along_first(node.op)
        and len(node.inputs) == 2
        and node.inputs[1].type.ndim == 1
        and node.inputs[1].type.dtype != "bool"
    )
