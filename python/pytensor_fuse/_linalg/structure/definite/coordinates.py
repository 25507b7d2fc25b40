"""Distances as sums over coordinates: ``sum over k of f(x_ik - x_jk)`` of points in rows.

The points have a third axis for the coordinates. Each summand, the square of a difference or of its
sine (half of 1 minus a cosine), is nonnegative and conditionally negative, so the sum is. Each may
be scaled by a number of its own.
"""

from __future__ import annotations

from typing import Any

from pytensor.scalar.basic import Mul, Neg, Pow, Sin, Sqr, Sub, TrueDiv
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Sum

from pytensor_fuse._linalg.structure.matrices import same, scalar_op
from pytensor_fuse._linalg.structure.signs import number_of

# The largest number of factors of a difference.
_DEPTH = 6


def is_sum_over_coordinates(matrix: Any) -> bool:
    """Whether a matrix is a sum of squared differences of the rows of a matrix, or of sines."""
    node = matrix.owner
    if node is None or not isinstance(node.op, Sum) or node.op.axis not in ((2,), (-1,)):
        return False
    if not _is_exact(matrix):
        return False
    [stack] = node.inputs
    if stack.type.ndim != 3:
        return False
    root = _root(stack)
    if root is None:
        return False
    difference = _without_numbers(root)
    if isinstance(scalar_op(difference), Sin) and _is_exact(difference):
        [argument] = difference.owner.inputs
        difference = _without_numbers(argument)
    return _is_difference(difference)


def _root(squares: Any) -> Any:
    """Return the operand of an elementwise square; None for other variables.

    A factor outside the square may be negative, so it does not count.
    """
    if not _is_exact(squares):
        return None
    inputs = [] if squares.owner is None else squares.owner.inputs
    match scalar_op(squares):
        case Sqr():
            return inputs[0]
        case Pow():
            return inputs[0] if number_of(inputs[1]) == 2 else None
        case Mul():
            return inputs[0] if len(inputs) == 2 and same(*inputs) else None
    return None


def _without_numbers(stack: Any, depth: int = _DEPTH) -> Any:
    """Return a stack before it is multiplied or divided by a number for each coordinate."""
    op = scalar_op(stack)
    if depth == 0 or not isinstance(op, Mul | TrueDiv | Neg) or not _is_exact(stack):
        return stack
    inputs = stack.owner.inputs
    whole = [i for i, one in enumerate(inputs) if one.type.broadcastable[:2] != (True, True)]
    if len(whole) != 1 or (isinstance(op, TrueDiv) and whole != [0]):
        return stack
    return _without_numbers(inputs[whole[0]], depth - 1)


def _is_difference(stack: Any) -> bool:
    """Whether a stack is ``X[:, None, :] - X[None, :, :]``."""
    if not isinstance(scalar_op(stack), Sub) or not _is_exact(stack):
        return False
    first, second = (_rows(one) for one in stack.owner.inputs)
    if first is None or second is None or not same(first[0], second[0]):
        return False
    return {first[1], second[1]} == {(0, "x", 1), ("x", 0, 1)}


def _rows(stack: Any) -> tuple[Any, tuple[Any, ...]] | None:
    """Return the matrix whose rows are along one axis, and the order of the axes."""
    if stack.owner is None or not isinstance(stack.owner.op, DimShuffle):
        return None
    [inner] = stack.owner.inputs
    if inner.type.ndim != 2 or not _is_exact(inner):
        return None
    return inner, tuple(stack.owner.op.new_order)


def _is_exact(variable: Any) -> bool:
    return bool(variable.type.dtype == "float64")
