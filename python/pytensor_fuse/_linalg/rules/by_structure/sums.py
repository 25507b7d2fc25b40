"""Products with sums of structured matrices, and their diagonals and sums of elements.

The gradient of a log-density by a covariance is ``G = a (A^-1 y) (A^-1 y)' + b A^-1``. If the
covariance is ``D + U U'``, only ``G U``, the diagonal of ``G``, or the sum of the elements of
``G * B`` for a ``B`` that is diagonal or a thin product, is used. Each is the sum of the same for
the summands of ``G``, so ``G`` itself is not computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pytensor.compile.builders import OpFromGraph
from pytensor.scalar.basic import Add, Mul, Neg, Sub, TrueDiv
from pytensor.tensor.math import Sum

from pytensor_fuse._linalg.costs import Cost, product_cost, term
from pytensor_fuse._linalg.structure.diagonal import whose_diagonal
from pytensor_fuse._linalg.structure.free_factors import is_work_to_do
from pytensor_fuse._linalg.structure.kronecker import Kronecker
from pytensor_fuse._linalg.structure.matrices import (
    as_scalar,
    is_product_to_make,
    is_real_matrix,
    long_axes,
    product_of,
    scalar_op,
    sum_of,
    turned,
)
from pytensor_fuse._linalg.structure.outer_products import outer_product
from pytensor_fuse._linalg.structure.summands import StructuredSum, ThinProduct, structured_sum
from pytensor_fuse._linalg.structure.taken_diagonals import diagonal_taken

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

# How deep sums and products are looked through.
_DEPTH: Final = 8


def product_with_structured_sum(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Multiply a thin matrix by each of the summands of a matrix of known structure."""
    if not is_product_to_make(node):
        return None
    left, right = node.inputs
    new = _times(fgraph, left, right)
    if new is not None and is_work_to_do(fgraph, node, right):
        return [new]
    if structured_sum(fgraph, right) is None:
        return None
    new = _times(fgraph, turned(right), turned(left))
    if new is not None and is_work_to_do(fgraph, node, left):
        return [new.T]
    return None


def _times(fgraph: FunctionGraph, left: Any, right: Any) -> Any:
    """Return the product; None if it does not pay."""
    known = structured_sum(fgraph, left)
    if known is None or not known.is_worth_it:
        return None
    thin, other = _thin_factor(fgraph, right)
    columns, n = thin.type.shape[1], known.size
    if columns is None:
        return None
    # The factor of an inverse is shared with the other rules.
    if not (known.cost(columns) + known.cost(columns)).is_at_most(_cost(known, columns)):
        return None
    result = known.times(thin)
    return result if other is None or n == 1 else other(result)


def _thin_factor(fgraph: FunctionGraph, right: Any) -> tuple[Any, Callable[[Any], Any] | None]:
    """Return the thin left factor of a matrix, and a function that multiplies by the right one."""
    outer = None if right.type.broadcastable[1] else outer_product(right)
    if outer is not None:
        return outer.column, lambda result: result * outer.row
    found = structured_sum(fgraph, right)
    if found is not None and len(found.summands) == 1:
        [one] = found.summands
        thin = one.matrix
        if isinstance(thin, ThinProduct):
            return thin.left, lambda result: one.scaled(result @ thin.right.T)
    return right, None


def _cost(known: StructuredSum, columns: int) -> Cost:
    """Return the cost of the product and of the inverses that it would need."""
    n = known.size
    factorization = term(n * n * n // 3 if known.has_inverses else 0)
    return product_cost(n, n, columns) + factorization


def diagonal_of_structured_sum(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Sum the diagonals of the summands of a matrix of known structure."""
    matrix = _whose_diagonal_is_taken(node)
    known = None if matrix is None else structured_sum(fgraph, matrix)
    if known is None or not known.is_worth_it:
        return None
    return [known.diagonal()]


def _whose_diagonal_is_taken(node: Apply[Any]) -> Any:
    """Return the matrix whose main diagonal a node takes; None if it does not."""
    if isinstance(node.op, OpFromGraph):
        taken = diagonal_taken(node)
        return node.inputs[2] if taken is not None and not taken.offset else None
    return whose_diagonal(node.outputs[0])


def sum_of_structured_product(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Sum the elements of ``G * B`` from the summands of ``G``, with a ``B`` of known structure."""
    op = node.op
    if not isinstance(op, Sum) or node.outputs[0].type.ndim:
        return None
    found = _sum_of(fgraph, node.inputs[0], _DEPTH)
    return None if found is None else [found]


def _sum_of(fgraph: FunctionGraph, variable: Any, depth: int) -> Any:
    """Return the sum of all elements; None if some summand is not known."""
    op = scalar_op(variable)
    if depth == 0 or not is_real_matrix(variable):
        return None
    if isinstance(op, Neg):
        inner = _sum_of(fgraph, variable.owner.inputs[0], depth - 1)
        return None if inner is None else -inner
    if isinstance(op, Add | Sub):
        parts = [_sum_of(fgraph, one, depth - 1) for one in variable.owner.inputs]
        if any(one is None for one in parts):
            return None
        return sum_of(parts) if isinstance(op, Add) else parts[0] - parts[1]
    if isinstance(op, TrueDiv) and not long_axes(variable.owner.inputs[1]):
        inner = _sum_of(fgraph, variable.owner.inputs[0], depth - 1)
        return None if inner is None else inner / as_scalar(variable.owner.inputs[1])
    if not isinstance(op, Mul):
        return None
    numbers = [one for one in variable.owner.inputs if not long_axes(one)]
    lines = [one for one in variable.owner.inputs if long_axes(one) == 1]
    rest = [one for one in variable.owner.inputs if long_axes(one) == 2]
    if lines:
        rest.append(product_of(lines))
    if len(rest) == 1 and numbers:
        inner = _sum_of(fgraph, rest[0], depth - 1)
        return None if inner is None else inner * product_of([as_scalar(one) for one in numbers])
    if len(rest) != 2:
        return None
    first, second = (structured_sum(fgraph, one) for one in rest)
    if first is None or second is None or first.size != second.size:
        return None
    if second.has_inverses:
        first, second = second, first
    if second.has_inverses or not (first.is_worth_it or second.is_worth_it or first != second):
        return None
    columns = sum(_columns(one.matrix) for one in second.summands)
    if not first.cost(columns).is_at_most(_cost(first, columns)):
        return None
    result = first.times_elements_of(second)
    if not numbers or result is None:
        return result
    return result * product_of([as_scalar(one) for one in numbers])


def _columns(matrix: Any) -> int:
    """Return the number of columns multiplied for the sum of products of elements, or its like."""
    if isinstance(matrix, Kronecker):
        return sum(matrix.sizes)
    return matrix.rank if isinstance(matrix, ThinProduct) else 1
