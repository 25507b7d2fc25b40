"""Operands and workspaces of linear algebra rules: matrices in memory, of one dtype, and sizes.

LAPACK works on blocks of at most 64 columns, and adapts to the workspace: with room for a block, it
behaves as after a query for the optimal size. Workspaces follow LAPACK's documented formulas.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from numpy.linalg import LinAlgError

from pytensor_fuse._native.lowering.tensors import DTYPES, Tensor
from pytensor_fuse._native.program.model import Operand

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.lowering.types import BufferId, Context, Node, Value, Variables

# BLAS and LAPACK have 32-bit sizes.
_MOST: Final = 2**31
_TOO_LONG: Final = "an axis of {0} elements is longer than BLAS and LAPACK can count"
# Messages of PyTensor's Numba implementation.
NOT_SQUARE: Final = "Last 2 dimensions of A must be square"
NOT_CONFORMING: Final = "Dimensions of A and B do not conform"


def real_refusal(node: Node) -> str | None:
    """Return the reason why a node's operands and results are not real arrays, or None."""
    return real_refusal_of((*node.inputs, *node.outputs))


def refuses_not_real(op: Any, node: Node) -> str | None:
    """Return the reason why a node's operands and results are not real arrays, or None."""
    return real_refusal(node)


def real_refusal_of(variables: Variables) -> str | None:
    """Return the reason why variables are not real arrays, or None."""
    for variable in variables:
        dtype = getattr(variable.type, "dtype", None)
        if dtype not in DTYPES or dtype == "bool":
            return f"linear algebra of {dtype or variable.type}"
    return None


def sizes_of(context: Context, lengths: Sequence[Value]) -> list[Value]:
    """Return lengths as sizes for a routine, with a check that they fit into 32 bits."""
    builder = context.builder
    sizes = [context.length(length) for length in lengths]
    for size in sizes:
        number = builder.number(size)
        if number is None or number >= _MOST:
            is_short = builder.op("lt", size, builder.index(_MOST))
            builder.check(is_short, OverflowError, _TOO_LONG, size)
    return sizes


def in_memory(context: Context, tensor: Tensor) -> tuple[Operand, bool]:
    """Return an array as an operand for a routine, and whether it is stored transposed.

    The array is copied unless a buffer holds it, with its axes in order or reversed.
    """
    layout = tensor.layout
    if layout is not None:
        axes = [axis for axis in layout.axes if axis is not None]
        for is_transposed in (False, True):
            if axes == sorted(axes, reverse=is_transposed):
                return Operand(layout.buffer, layout.prefix), is_transposed
    return Operand(context.copied(tensor)), False


def can_overwrite(context: Context, tensor: Tensor) -> bool:
    """Whether a routine can work in place on an array, if its op may overwrite it.

    It can if the array is a whole buffer with its axes in order, and the buffer is temporary, or an
    overwritable input of the program. Within a loop over a batch, results are parts of one array,
    so nothing is overwritten.
    """
    layout = tensor.layout
    if layout is None or layout.prefix or context.batch:
        return False
    about = context.builder.program.buffers[layout.buffer]
    is_whole = layout.axes == tuple(range(len(about.lengths)))
    may_change = about.kind == "temporary" or layout.buffer in context.overwritable
    return is_whole and may_change and about.dtype == tensor.dtype


def owned(context: Context, tensor: Tensor, *, may_overwrite: bool) -> Operand:
    """Return an array that routines may overwrite: the operand itself, or a copy.

    Parameters
    ----------
    context
        The lowering.
    tensor
        The array.
    may_overwrite
        Whether the op may overwrite the array, which then has no later readers.
    """
    if not may_overwrite or not can_overwrite(context, tensor):
        return context.copy_of(tensor)
    assert tensor.layout is not None
    buffer = tensor.layout.buffer
    if buffer in context.overwritable:
        context.overwritten.add(buffer)
    context.builder.program.buffers[buffer].is_once = False
    return Operand(buffer)


def as_it_lies(tensor: Tensor) -> tuple[Tensor, bool]:
    """Return a matrix or its transpose, whichever is row-major, and whether it is the latter.

    A matrix that is not in memory is returned itself.
    """
    layout = tensor.layout
    if layout is not None and layout.axes == (1, 0):
        return transposed(tensor), True
    return tensor, False


def transposed(tensor: Tensor) -> Tensor:
    """Return the transpose of a matrix."""
    layout = tensor.layout
    return Tensor(
        tensor.dtype,
        tensor.lengths[::-1],
        lambda index: tensor.at(index[::-1]),
        layout=None if layout is None else layout._replace(axes=layout.axes[::-1]),
    )


def require_square(context: Context, matrix: Tensor) -> Value:
    """Emit a check that a matrix is square; return the length of its axes."""
    rows, columns = matrix.lengths
    return context.require_equal(rows, columns, LinAlgError, NOT_SQUARE)


def require_conforming(context: Context, matrix: Tensor, right: Tensor) -> Value:
    """Emit checks that a matrix is square, with as many rows as the right-hand side."""
    context.require_equal(matrix.lengths[0], right.lengths[0], LinAlgError, NOT_CONFORMING)
    return require_square(context, matrix)


def has_succeeded(context: Context, report: Value) -> Value:
    """Return the condition that LAPACK's status is a success."""
    return context.builder.op("eq", report, context.builder.index(0))


def is_finite(context: Context, value: Value) -> Value:
    """Return a condition that is true if a number is finite."""
    builder = context.builder
    infinity = builder.constant(builder.dtype(value), math.inf)
    return builder.op("lt", builder.op("abs", value), infinity)


def all_finite(context: Context, matrix: Tensor) -> Value:
    """Return a condition that is true if all elements of a matrix are finite."""
    matrix, _ = as_it_lies(matrix)
    rows, columns = matrix.lengths

    def is_row_finite(row: Value) -> Value:
        return context.all_hold(columns, lambda at: is_finite(context, matrix.at((row, at))))

    return context.all_hold(rows, is_row_finite)


BLOCK: Final = 64


def work(
    context: Context, dtype: str, *terms: tuple[int, *tuple[Value, ...]]
) -> tuple[Value, BufferId]:
    """Return an array whose size is a sum of products of numbers and lengths, at least 1.

    Parameters
    ----------
    context
        The lowering.
    dtype
        The dtype of the array.
    *terms
        The factors of each term: a number, then lengths.

    Returns
    -------
    size : Value
        The number of elements, as a size for a routine.
    buffer : BufferId
        The array.
    """
    builder = context.builder
    total = builder.index(0)
    for number, *lengths in terms:
        term = context.folded("mul", builder.index(number), lengths)
        total = builder.op("add", total, term)
    [size] = sizes_of(context, [builder.op("maximum", total, builder.index(1))])
    return size, context.temporary(dtype, [size], is_once=False)
