"""Solve: linear systems, by the assumed structure of their matrix.

The solution is NaN if the matrix is singular, or not positive definite despite the assumption, as
in PyTensor's Numba implementation. Unlike SciPy, neither implementation warns of ill-conditioned
matrices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.tensor.linalg.solvers.general import Solve

from pytensor_fuse._native.lowering.matrices import operands
from pytensor_fuse._native.lowering.registry import lower
from pytensor_fuse._native.lowering.systems import right_sides
from pytensor_fuse._native.lowering.systems.lu_factors import lu_factors
from pytensor_fuse._native.lowering.systems.small import (
    is_small,
    small_factor,
    small_solution_by_factor,
    small_system,
)
from pytensor_fuse._native.lowering.systems.triangles import solve_with_cholesky
from pytensor_fuse._native.lowering.systems.tridiagonal import solve_tridiagonal
from pytensor_fuse._native.lowering.tensors import DTYPES, Tensor
from pytensor_fuse._native.program.model import Operand

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.types import Context, Node, Tensors


@lower.register(Solve, refuses=operands.refuses_not_real)
def _solve(op: Solve, node: Node, context: Context, inputs: Tensors) -> Tensors:
    dtype = DTYPES[node.outputs[0].type.dtype]
    matrix, right = (context.of_dtype(one, dtype) for one in inputs)
    size = operands.require_conforming(context, matrix, right)
    matrix = Tensor(dtype, (size, size), matrix.at, layout=matrix.layout)
    right = Tensor(dtype, (size, *right.lengths[1:]), right.at, layout=right.layout)
    # Wider bands are solved like general matrices, as by Numba, which warns.
    solve = {
        "pos": _positive_definite,
        "sym": _symmetric,
        "her": _symmetric,
        "tridiagonal": _tridiagonal,
    }.get(op.assume_a, _general)
    return [solve(op, context, matrix, right)]


def _general(op: Solve, context: Context, matrix: Tensor, right: Tensor) -> Tensor:
    if is_small(context, matrix.lengths[0], right.lengths):
        return small_system(context, matrix, right, matrix.lengths[0])
    factors = lu_factors(context, matrix, may_overwrite=op.overwrite_a)
    columns = right_sides.columns_of(context, right, may_overwrite=op.overwrite_b)
    sizes = operands.sizes_of(context, [factors.size, right_sides.n_columns(context, right)])

    def solve() -> None:
        context.builder.call("getrs", sizes, [columns, factors.columns, factors.pivots])

    right_sides.solved_if(context, operands.has_succeeded(context, factors.report), columns, solve)
    return right_sides.solution_of(context, columns)


def _positive_definite(op: Solve, context: Context, matrix: Tensor, right: Tensor) -> Tensor:
    if is_small(context, matrix.lengths[0], right.lengths):
        small = small_factor(context, matrix, matrix.lengths[0], lower=op.lower)
        return small_solution_by_factor(context, small, right, lower=op.lower)
    matrix, is_transposed = operands.as_it_lies(matrix)
    is_lower = op.lower != is_transposed
    factor = operands.owned(context, matrix, may_overwrite=op.overwrite_a)
    solution = operands.owned(context, right, may_overwrite=op.overwrite_b)
    name = "potrf_l" if is_lower else "potrf_u"
    report = context.builder.call(name, operands.sizes_of(context, matrix.lengths[:1]), [factor])

    def solve() -> None:
        solve_with_cholesky(context, context.held(factor), solution, lower=is_lower)

    right_sides.solved_if(context, operands.has_succeeded(context, report), solution, solve)
    return context.held(solution)


def _symmetric(op: Solve, context: Context, matrix: Tensor, right: Tensor) -> Tensor:
    builder = context.builder
    matrix, is_transposed = operands.as_it_lies(matrix)
    is_lower = op.lower != is_transposed
    size = matrix.lengths[0]
    factor = operands.owned(context, matrix, may_overwrite=op.overwrite_a)
    columns = right_sides.columns_of(context, right, may_overwrite=op.overwrite_b)
    pivots = Operand(context.temporary("i32", (size,)))
    length, room = operands.work(context, matrix.dtype, (operands.BLOCK, size))
    report = builder.call(
        "sysv_l" if is_lower else "sysv_u",
        [*operands.sizes_of(context, [size, right_sides.n_columns(context, right)]), length],
        [factor, pivots, columns, room],
    )
    right_sides.solved_if(context, operands.has_succeeded(context, report), columns, lambda: None)
    return right_sides.solution_of(context, columns)


def _tridiagonal(op: Solve, context: Context, matrix: Tensor, right: Tensor) -> Tensor:
    columns = right_sides.columns_of(context, right, may_overwrite=op.overwrite_b)
    solve_tridiagonal(context, matrix, columns, right_sides.n_columns(context, right))
    return right_sides.solution_of(context, columns)
