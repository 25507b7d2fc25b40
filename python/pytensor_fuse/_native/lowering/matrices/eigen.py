"""Eigenvalues and eigenvectors of symmetric matrices, including generalized problems.

If LAPACK fails, all results are NaN, as in PyTensor's Numba implementation.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from numpy.linalg import LinAlgError
from pytensor.tensor.linalg.decomposition.eigen import Eigh, Eigvalsh

from pytensor_fuse._native.lowering.matrices import operands
from pytensor_fuse._native.lowering.registry import lower
from pytensor_fuse._native.lowering.tensors import DTYPES, Tensor
from pytensor_fuse._native.program.model import Operand

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor_fuse._native.lowering.types import Context, Index, Node, Tensors, Value


# The message of PyTensor's Numba implementation.
_NOT_A_PAIR: Final = "A and B must have the same shape"
# The triangle of the stored transpose to read, by ``lower``.
_TRIANGLES: Final = {True: "u", False: "l"}


@lower.register(Eigh, Eigvalsh, refuses=operands.refuses_not_real)
def _eigen(op: Any, node: Node, context: Context, inputs: Tensors) -> Tensors:
    dtype = DTYPES[node.outputs[0].type.dtype]
    size, matrices = _columns(context, [context.of_dtype(one, dtype) for one in inputs])
    results = [context.array(dtype, [size], is_once=False)]
    has_vectors, is_pair = isinstance(op, Eigh), len(matrices) == 2
    by_representations = not is_pair and (not has_vectors or op.driver == "evr")
    if has_vectors and by_representations:
        results.append(context.array(dtype, [size, size], is_once=False))
    elif has_vectors:
        # All other routines overwrite the matrix with the eigenvectors.
        results.append(matrices[0])

    def run() -> Value:
        triangle = _TRIANGLES[op.lower]
        if by_representations:
            return _by_representations(context, triangle, size, matrices[0], *results)
        name = f"{'sygvd' if is_pair else 'syevd'}_{triangle}"
        if has_vectors:
            length, room = operands.work(
                context, dtype, (2, size, size), (2 + operands.BLOCK, size), (1,)
            )
            n_integers, integers = operands.work(context, "i32", (5, size), (3,))
        else:
            name += "_values"
            length, room = operands.work(context, dtype, (2 + operands.BLOCK, size), (1,))
            n_integers, integers = operands.work(context, "i32", (1,))
        sizes = [*operands.sizes_of(context, [size]), length, n_integers]
        return context.builder.call(name, sizes, [*matrices, results[0], room, integers])

    _run_on_finite(context, matrices, results, run, lower=op.lower)
    values, *vectors = [context.held(one) for one in results]
    return [values, *[operands.transposed(one) for one in vectors]]


def _run_on_finite(
    context: Context,
    matrices: list[Operand],
    results: list[Operand],
    run: Callable[[], Value],
    *,
    lower: bool,
) -> None:
    """Run a routine, and fill its results with NaN if it fails.

    The routine runs on finite numbers only: on others, LAPACK may loop forever, as it does in
    PyTensor's Numba implementation, or report success without writing results.
    """
    true = context.builder.constant("bool", True)
    are_finite = context.folded(
        "and", true, (_is_finite(context, one, lower=lower) for one in matrices)
    )

    def run_once() -> None:
        succeeded = operands.has_succeeded(context, run())
        for array in results:
            context.fill_unless(succeeded, array)

    def fail() -> None:
        for array in results:
            context.fill_with(array, math.nan)

    context.branch(are_finite, run_once, fail)


def _is_finite(context: Context, matrix: Operand, *, lower: bool) -> Value:
    """Return a condition that is true if one triangle of a column-major matrix is finite."""
    builder, given = context.builder, context.held(matrix)
    zero = builder.constant(given.dtype, 0.0)

    def in_triangle(index: Index) -> Value:
        column, row = index
        is_in = builder.op("ge" if lower else "le", row, column)
        return builder.op("select", is_in, given.at(index), zero)

    return operands.all_finite(context, Tensor(given.dtype, given.lengths, in_triangle))


def _columns(context: Context, given: Tensors) -> tuple[Value, list[Operand]]:
    """Return the size of one or two matrices, and column-major copies for routines to overwrite."""
    size = operands.require_square(context, given[0])
    for other in given[1:]:
        for length in other.lengths:
            context.require_equal(length, size, LinAlgError, _NOT_A_PAIR)
    return size, [
        context.copy_of(operands.transposed(Tensor(one.dtype, (size, size), one.at)))
        for one in given
    ]


def _by_representations(
    context: Context,
    triangle: str,
    size: Value,
    matrix: Operand,
    values: Operand,
    vectors: Operand | None = None,
) -> Value:
    """Compute eigenvalues, and eigenvectors, by relatively robust representations."""
    builder = context.builder
    dtype = builder.program.buffers[values.buffer].dtype
    length, room = operands.work(context, dtype, (6 + operands.BLOCK, size))
    n_integers, integers = operands.work(context, "i32", (10, size))
    n_found = Operand(context.temporary("i32", (), is_once=False))
    sizes = operands.sizes_of(context, [size])
    if vectors is None:
        return builder.call(
            f"syevr_{triangle}_values",
            [*sizes, length, n_integers],
            [matrix, values, n_found, room, integers],
        )
    n_supports, supports = operands.work(context, "i32", (2, size))
    return builder.call(
        f"syevr_{triangle}",
        [*sizes, n_supports, length, n_integers],
        [matrix, values, vectors, n_found, supports, room, integers],
    )
