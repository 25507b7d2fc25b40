"""Cholesky factors, and linear systems with triangular matrices or Cholesky factors.

As in PyTensor, the factor is NaN if the matrix is not positive definite, and the solution is NaN if
the diagonal contains a zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.tensor.linalg.decomposition.cholesky import Cholesky
from pytensor.tensor.linalg.solvers.psd import CholeskySolve
from pytensor.tensor.linalg.solvers.triangular import SolveTriangular

from pytensor_fuse._native.lowering.matrices import operands
from pytensor_fuse._native.lowering.registry import lower
from pytensor_fuse._native.lowering.systems.right_sides import solved_if
from pytensor_fuse._native.lowering.systems.small import (
    is_small,
    small_factor,
    small_solution,
    small_solution_by_factor,
)
from pytensor_fuse._native.lowering.systems.triangle_loops import clear_triangle
from pytensor_fuse._native.lowering.tensors import DTYPES, Tensor
from pytensor_fuse._native.program.model import Operand

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.types import Context, Index, Node, Tensors, Value


@lower.register(Cholesky, refuses=operands.refuses_not_real)
def _cholesky(op: Cholesky, node: Node, context: Context, inputs: Tensors) -> Tensors:
    matrix = context.of_dtype(inputs[0], DTYPES[node.outputs[0].type.dtype])
    return [cholesky_factor(context, matrix, lower=op.lower, may_overwrite=op.overwrite_a)]


def cholesky_factor(
    context: Context, matrix: Tensor, *, lower: bool, may_overwrite: bool = False
) -> Tensor:
    """Return the Cholesky factor of a matrix of floats.

    Parameters
    ----------
    context
        The lowering.
    matrix
        The matrix.
    lower
        Whether the factor is a lower triangle.
    may_overwrite
        Whether the factor may overwrite the matrix.
    """
    builder, dtype = context.builder, matrix.dtype
    size = operands.require_square(context, matrix)
    if is_small(context, size):
        return small_factor(context, matrix, size, lower=lower)
    matrix, is_transposed = operands.as_it_lies(matrix)
    zero = builder.constant(dtype, 0.0)
    lower = lower != is_transposed

    def of_triangle(index: Index) -> Value:
        row, column = index
        is_in = builder.op("ge" if lower else "le", row, column)
        return builder.op("select", is_in, matrix.at(index), zero)

    in_place = may_overwrite and operands.can_overwrite(context, matrix)
    if in_place:
        factor = operands.owned(context, matrix, may_overwrite=True)
    else:
        factor = context.copy_of(Tensor(dtype, (size, size), of_triangle))
    report = builder.call(
        "potrf_l" if lower else "potrf_u", operands.sizes_of(context, [size]), [factor]
    )
    if in_place:
        clear_triangle(context, factor, lower=not lower)
    context.fill_unless(operands.has_succeeded(context, report), factor)
    held = context.held(factor)
    return operands.transposed(held) if is_transposed else held


def solve_triangle(
    context: Context, factor: Tensor, solution: Operand, *, lower: bool, unit: bool = False
) -> None:
    """Solve a triangular system in place.

    Parameters
    ----------
    context
        The lowering.
    factor
        The matrix, of which only one triangle is read.
    solution
        An array with the right-hand sides, a vector or the columns of a matrix.
    lower
        Whether the lower triangle is read.
    unit
        Whether to assume a unit diagonal, whatever the matrix contains.
    """
    builder = context.builder
    held, is_transposed = operands.in_memory(context, factor)
    about = builder.program.buffers[solution.buffer]
    lengths = about.lengths[len(solution.prefix) :]
    name = "solve_" + ("l" if lower else "u") + ("t" if is_transposed else "")
    name += "_unit" if unit else ""
    if len(lengths) == 1 or builder.number(lengths[1]) == 1:
        sizes = operands.sizes_of(context, lengths[:1])
        builder.call(f"{name}_vector", sizes, [solution, held])
    else:
        builder.call(name, operands.sizes_of(context, lengths), [solution, held])


@lower.register(SolveTriangular, refuses=operands.refuses_not_real)
def _solve_triangular(
    op: SolveTriangular, node: Node, context: Context, inputs: Tensors
) -> Tensors:
    builder, dtype = context.builder, DTYPES[node.outputs[0].type.dtype]
    matrix, right = (context.of_dtype(one, dtype) for one in inputs)
    size = operands.require_conforming(context, matrix, right)
    if is_small(context, size, right.lengths):
        unit = bool(op.unit_diagonal)
        return [small_solution(context, matrix, right, size, lower=op.lower, unit=unit)]
    right = Tensor(dtype, (size, *right.lengths[1:]), right.at, layout=right.layout)
    solution = operands.owned(context, right, may_overwrite=op.overwrite_b)
    if op.unit_diagonal:
        solve_triangle(context, matrix, solution, lower=op.lower, unit=True)
        return [context.held(solution)]
    zero = builder.constant(dtype, 0.0)
    is_regular = context.all_hold(size, lambda at: builder.op("ne", matrix.at((at, at)), zero))

    def solve() -> None:
        solve_triangle(context, matrix, solution, lower=op.lower)

    solved_if(context, is_regular, solution, solve)
    return [context.held(solution)]


@lower.register(CholeskySolve, refuses=operands.refuses_not_real)
def _cholesky_solve(op: CholeskySolve, node: Node, context: Context, inputs: Tensors) -> Tensors:
    dtype = DTYPES[node.outputs[0].type.dtype]
    factor, right = (context.of_dtype(one, dtype) for one in inputs)
    size = operands.require_conforming(context, factor, right)
    right = Tensor(dtype, (size, *right.lengths[1:]), right.at, layout=right.layout)
    if is_small(context, size, right.lengths):
        return [small_solution_by_factor(context, factor, right, lower=op.lower)]
    solution = operands.owned(context, right, may_overwrite=op.overwrite_b)
    solve_with_cholesky(context, factor, solution, lower=op.lower)
    return [context.held(solution)]


def solve_with_cholesky(
    context: Context, factor: Tensor, solution: Operand, *, lower: bool
) -> None:
    """Solve a system in place with the lower or upper Cholesky factor of its matrix."""
    for matrix in (factor, operands.transposed(factor))[:: 1 if lower else -1]:
        solve_triangle(context, matrix, solution, lower=(matrix is factor) == lower)
