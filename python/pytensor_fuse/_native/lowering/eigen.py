"""Eigenvalues and eigenvectors of symmetric matrices, of one or of a pair.

Where LAPACK fails, all numbers are NaN, as in PyTensor's Numba implementation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pytensor.tensor.linalg.decomposition.eigen import Eigh, Eigvalsh
from scipy.linalg import LinAlgError

from pytensor_fuse._native.lowering.matrices import (
    copy_of,
    of_dtype,
    real_refusal,
    require_square,
    sizes_of,
    transposed,
)
from pytensor_fuse._native.lowering.registry import lower
from pytensor_fuse._native.lowering.tensors import DTYPES, Tensor
from pytensor_fuse._native.lowering.triangles import fill_unless
from pytensor_fuse._native.lowering.workspaces import BLOCK, work
from pytensor_fuse._native.program.model import Operand

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply

    from pytensor_fuse._native.lowering.context import Context
    from pytensor_fuse._native.program.model import Value

# The text of PyTensor's Numba implementation.
_NOT_A_PAIR: Final = "A and B must have the same shape"


def _refuses(op: Any, node: Apply[Any]) -> str | None:
    return real_refusal(node)


@lower.register(Eigh, refuses=_refuses)
def _eigh(op: Eigh, node: Apply[Any], context: Context, inputs: list[Tensor]) -> list[Tensor]:
    dtype = DTYPES[node.outputs[0].type.dtype]
    size, matrices = _columns(context, [of_dtype(context, one, dtype) for one in inputs])
    values = context.array(dtype, [size], is_once=False)
    # The columns of a matrix lie in rows, so that its lower triangle is the upper one.
    triangle = "u" if op.lower else "l"
    if len(matrices) == 1 and op.driver == "evr":
        vectors = context.array(dtype, [size, size], is_once=False)
        report = _by_representations(context, triangle, size, matrices[0], values, vectors)
    else:
        vectors = matrices[0]
        length, room = work(context, dtype, (2, size, size), (2 + BLOCK, size), (1,))
        n_integers, integers = work(context, "i32", (5, size), (3,))
        report = context.builder.call(
            f"{'sygvd' if len(matrices) == 2 else 'syevd'}_{triangle}",
            [*sizes_of(context, [size]), length, n_integers],
            [*matrices, values, room, integers],
        )
    _fill_if_failed(context, report, [values, vectors])
    return [context.held(values), transposed(context.held(vectors))]


@lower.register(Eigvalsh, refuses=_refuses)
def _eigvalsh(
    op: Eigvalsh, node: Apply[Any], context: Context, inputs: list[Tensor]
) -> list[Tensor]:
    dtype = DTYPES[node.outputs[0].type.dtype]
    size, matrices = _columns(context, [of_dtype(context, one, dtype) for one in inputs])
    values = context.array(dtype, [size], is_once=False)
    triangle = "u" if op.lower else "l"
    if len(matrices) == 1:
        report = _by_representations(context, triangle, size, matrices[0], values)
    else:
        length, room = work(context, dtype, (2 + BLOCK, size), (1,))
        n_integers, integers = work(context, "i32", (1,))
        report = context.builder.call(
            f"sygvd_{triangle}_values",
            [*sizes_of(context, [size]), length, n_integers],
            [*matrices, values, room, integers],
        )
    _fill_if_failed(context, report, [values])
    return [context.held(values)]


def _columns(context: Context, given: list[Tensor]) -> tuple[Value, list[Operand]]:
    """Return the size of one or two matrices, and their columns, which routines may change."""
    size = require_square(context, given[0])
    for other in given[1:]:
        for length in other.lengths:
            context.require_equal(length, size, LinAlgError, _NOT_A_PAIR)
    return size, [
        copy_of(context, transposed(Tensor(one.dtype, (size, size), one.at))) for one in given
    ]


def _by_representations(
    context: Context,
    triangle: str,
    size: Value,
    matrix: Operand,
    values: Operand,
    vectors: Operand | None = None,
) -> Value:
    """Find the eigenvalues, and the eigenvectors, by relatively robust representations."""
    builder = context.builder
    dtype = builder.program.buffers[values.buffer].dtype
    length, room = work(context, dtype, (6 + BLOCK, size))
    n_integers, integers = work(context, "i32", (10, size))
    n_found = Operand(context.temporary("i32", (), is_once=False))
    sizes = sizes_of(context, [size])
    if vectors is None:
        return builder.call(
            f"syevr_{triangle}_values",
            [*sizes, length, n_integers],
            [matrix, values, n_found, room, integers],
        )
    n_supports, supports = work(context, "i32", (2, size))
    return builder.call(
        f"syevr_{triangle}",
        [*sizes, n_supports, length, n_integers],
        [matrix, values, vectors, n_found, supports, room, integers],
    )


def _fill_if_failed(context: Context, report: Value, arrays: list[Operand]) -> None:
    succeeded = context.builder.op("eq", report, context.builder.index(0))
    for array in arrays:
        fill_unless(context, succeeded, array)
