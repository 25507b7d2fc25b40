"""Right-hand sides of linear systems: column-major arrays, which LAPACK overwrites in place."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pytensor_fuse._native.lowering.matrices.operands import owned, transposed

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor_fuse._native.lowering.types import Context, Operand, Tensor, Value


def columns_of(context: Context, right: Tensor, *, may_overwrite: bool) -> Operand:
    """Return right-hand sides in column-major order, in an array that LAPACK may overwrite."""
    return owned(context, _turned(right), may_overwrite=may_overwrite)


def solution_of(context: Context, columns: Operand) -> Tensor:
    """Return the contents of a column-major array."""
    return _turned(context.held(columns))


def _turned(tensor: Tensor) -> Tensor:
    return transposed(tensor) if tensor.ndim == 2 else tensor


def n_columns(context: Context, right: Tensor) -> Value:
    """Return the number of right-hand sides; a vector is one."""
    return right.lengths[1] if right.ndim == 2 else context.builder.index(1)


def solved_if(
    context: Context, condition: Value, solution: Operand, solve: Callable[[], None]
) -> None:
    """Solve if a condition holds, and set the solution to NaN otherwise."""
    context.branch(condition, solve, lambda: context.fill_with(solution, math.nan))
