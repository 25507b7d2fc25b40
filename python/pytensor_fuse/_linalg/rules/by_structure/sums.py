"""Sums of diagonal matrices, thin products and inverses, of which only thin products are needed.

The gradient of a log-density by a covariance is ``G = a (A^-1 y) (A^-1 y)' + b A^-1``. If the
covariance is ``D + U U'``, what is asked of ``G`` is ``G U``, its diagonal, or the sum of the
elements of ``G * B`` where ``B`` is diagonal or a thin product. Each of these is the sum of what it
is for the summands of ``G``, which themselves are never made.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.scalar.basic import Add, Mul, Neg, Sub, TrueDiv
from pytensor.tensor.basic import ARange, ExtractDiag
from pytensor.tensor.linalg.inverse import MatrixInverse
from pytensor.tensor.linalg.products import KroneckerProduct
from pytensor.tensor.math import Dot, Sum
from pytensor.tensor.shape import Shape
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from pytensor_fuse._linalg.costs import Cost, Length, product_cost, term
from pytensor_fuse._linalg.rules.replacements import replaced_and_cast
from pytensor_fuse._linalg.structure.diagonal import diagonal_of, is_of_known_size, sizes_of
from pytensor_fuse._linalg.structure.free_factors import is_work_to_do
from pytensor_fuse._linalg.structure.kronecker import (
    Kronecker,
    KroneckerInverse,
    ShiftedInverse,
    TracedOut,
    kronecker_product,
    partial_trace_of_diagonal,
    partial_trace_of_product,
    shifted_kronecker_product,
)
from pytensor_fuse._linalg.structure.lengths import if_equal
from pytensor_fuse._linalg.structure.low_rank import (
    LowRankUpdate,
    Woodbury,
    low_rank_update,
    product_of,
)
from pytensor_fuse._linalg.structure.matrices import (
    as_scalar,
    core_of,
    counts_from_zero,
    is_product_to_make,
    is_real_matrix,
    is_zero,
    long_axes,
    outer_product,
    scalar_op,
    transpose_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

# How deep sums and products are looked through.
_DEPTH: Final = 8


class Diagonal(NamedTuple):
    """A diagonal matrix.

    Attributes
    ----------
    entries
        Its diagonal, or the number by which the identity is multiplied.
    sizes
        How many rows it has, by each of its parts.
    """

    entries: Any
    sizes: tuple[Any, ...]

    def of_size(self, n: int) -> Diagonal:
        """Return it, of which it is seen that it has so many rows."""
        unknown = [size for size in self.sizes if not isinstance(size, int)]
        return self._replace(entries=if_equal(self.entries, n, *unknown)) if unknown else self

    def turned(self) -> Diagonal:
        """Return the transpose."""
        return self

    def cost(self, n: int, columns: Length) -> Cost:
        """Return what a product with some columns costs."""
        return term(1, n, columns)

    def times(self, right: Any) -> Any:
        """Return the product with a matrix."""
        return (self.entries[:, None] if self.entries.type.ndim else self.entries) * right

    def diagonal(self, n: int) -> Any:
        """Return the diagonal."""
        return self.entries if self.entries.type.ndim else pt.full((n,), self.entries)

    def trace(self, n: int) -> Any:
        """Return the trace."""
        return self.entries.sum() if self.entries.type.ndim else n * self.entries

    def partial_trace(self, out: TracedOut) -> Any:
        """Return a partial trace."""
        return partial_trace_of_diagonal(self.entries, out)


class ThinProduct(NamedTuple):
    """A product ``P Q'`` of thin matrices."""

    left: Any
    right: Any

    @property
    def rank(self) -> int:
        """How many columns both have."""
        rank: int = self.left.type.shape[1]
        return rank

    def turned(self) -> ThinProduct:
        """Return the transpose."""
        return ThinProduct(self.right, self.left)

    def cost(self, n: int, columns: Length) -> Cost:
        """Return what a product with some columns costs."""
        return term(4, n, self.rank, columns)

    def times(self, right: Any) -> Any:
        """Return the product with a matrix."""
        return _product(self.left, _product(self.right.T, right))

    def diagonal(self, n: int) -> Any:
        """Return the diagonal."""
        return (self.left * self.right).sum(axis=1)

    def trace(self, n: int) -> Any:
        """Return the trace."""
        return (self.left * self.right).sum()

    def partial_trace(self, out: TracedOut) -> Any:
        """Return a partial trace."""
        return partial_trace_of_product(self.left, self.right, out)


class Inverse(NamedTuple):
    """The inverse of a matrix ``D + U U'``."""

    of: LowRankUpdate

    def turned(self) -> Inverse:
        """Return the transpose."""
        return self

    def cost(self, n: int, columns: Length) -> Cost:
        """Return what a product with some columns costs."""
        return self.of.cost() + self.of.cost_of_solve(columns)

    def times(self, right: Any) -> Any:
        """Return the product with a matrix."""
        return Woodbury(self.of).solved(right)

    def diagonal(self, n: int) -> Any:
        """Return the diagonal."""
        return Woodbury(self.of).diagonal_of_inverse()

    def trace(self, n: int) -> Any:
        """Return the trace."""
        return Woodbury(self.of).trace_of_inverse()

    def partial_trace(self, out: TracedOut) -> None:
        """Return None: no form of it is known that takes less work."""


_INVERSES: Final = (Inverse, KroneckerInverse, ShiftedInverse)


class Summand(NamedTuple):
    """A matrix of known structure times numbers."""

    matrix: Diagonal | ThinProduct | Kronecker | Inverse | KroneckerInverse | ShiftedInverse
    numbers: tuple[Any, ...] = ()

    def of_size(self, n: int) -> Summand:
        """Return it, of which it is seen that it has so many rows."""
        if not isinstance(self.matrix, Diagonal):
            return self
        return self._replace(matrix=self.matrix.of_size(n))

    def by(self, *numbers: Any) -> Summand:
        """Return it times more numbers."""
        return self._replace(numbers=(*self.numbers, *numbers))

    def scaled(self, result: Any) -> Any:
        """Return what was found for the matrix, times the numbers."""
        return result * product_of(self.numbers) if self.numbers else result


class StructuredSum(NamedTuple):
    """A square matrix by its summands."""

    size: int
    summands: tuple[Summand, ...]

    def turned(self) -> StructuredSum:
        """Return the transpose."""
        turned = (one._replace(matrix=one.matrix.turned()) for one in self.summands)
        return self._replace(summands=tuple(turned))

    def cost(self, columns: Length) -> Cost:
        """Return what a product with some columns costs."""
        costs = [one.matrix.cost(self.size, columns) for one in self.summands]
        return sum(costs[1:], costs[0])

    def times(self, right: Any) -> Any:
        """Return the product with a matrix."""
        return _sum([one.scaled(one.matrix.times(right)) for one in self.summands])

    def diagonal(self) -> Any:
        """Return the diagonal."""
        return _sum([one.scaled(one.matrix.diagonal(self.size)) for one in self.summands])

    def trace(self) -> Any:
        """Return the trace."""
        return _sum([one.scaled(one.matrix.trace(self.size)) for one in self.summands])

    def partial_trace(self, out: TracedOut) -> Any:
        """Return a partial trace; None if that of some summand is not known."""
        found = [one.matrix.partial_trace(out) for one in self.summands]
        if self.size != prod(out.sizes) or any(one is None for one in found):
            return None
        return _sum([one.scaled(of) for one, of in zip(self.summands, found, strict=True)])

    def times_elements_of(self, other: StructuredSum) -> Any:
        """Return the sum of the products of the elements; None if it is not known.

        The other one has no inverses.
        """
        found: list[Any] = []
        for one in other.summands:
            if isinstance(one.matrix, ThinProduct):
                found.append(one.scaled((one.matrix.left * self.times(one.matrix.right)).sum()))
            elif isinstance(one.matrix, Kronecker):
                left, right = one.matrix
                kept = self.partial_trace(TracedOut(right, one.matrix.sizes, keeps_left=True))
                if kept is None:
                    return None
                found.append(one.scaled((kept * left).sum()))
            elif isinstance(one.matrix, Diagonal) and not one.matrix.entries.type.ndim:
                found.append(one.scaled(one.matrix.entries * self.trace()))
            else:
                found.append(one.scaled((self.diagonal() * one.matrix.diagonal(self.size)).sum()))
        return _sum(found)

    @property
    def is_worth_it(self) -> bool:
        """Whether it is more than other rules know: a sum, or an inverse."""
        return len(self.summands) > 1 or self.has_inverses

    @property
    def has_inverses(self) -> bool:
        """Whether some summand is an inverse."""
        return any(isinstance(one.matrix, _INVERSES) for one in self.summands)


def structured_sum(fgraph: FunctionGraph, variable: Any) -> StructuredSum | None:
    """Return the summands of a square matrix; None if one has no structure that is known."""
    if not is_real_matrix(variable):
        return None
    sizes = {size for size in variable.type.shape if size is not None}
    summands = _summands(fgraph, variable, _DEPTH)
    if None in variable.type.shape and all(
        isinstance(one.matrix, ThinProduct) for one in summands or ()
    ):
        # All else is square.
        return None
    for one in summands or ():
        if isinstance(one.matrix, Kronecker):
            sizes.add(one.matrix.size)
        elif isinstance(one.matrix, Inverse | KroneckerInverse | ShiftedInverse):
            sizes.add(one.matrix.of.size)
    if summands is None or len(sizes) != 1:
        return None
    size = sizes.pop()
    return StructuredSum(size, tuple(one.of_size(size) for one in summands))


def _summands(fgraph: FunctionGraph, variable: Any, depth: int) -> list[Summand] | None:
    if depth == 0 or variable.type.ndim != 2 or any(variable.type.broadcastable):
        return None
    node = variable.owner
    entries = diagonal_of(variable)
    if entries is not None:
        fits = entries.type.ndim or is_of_known_size(variable)
        return [Summand(Diagonal(entries, tuple(sizes_of(variable))))] if fits else None
    if node is None:
        return None
    inner = transpose_of(variable)
    if inner is not None:
        found = _summands(fgraph, inner, depth - 1) if inner.type.ndim == 2 else None
        return found and [one._replace(matrix=one.matrix.turned()) for one in found]
    core = core_of(node)
    if type(core) is MatrixInverse:
        inverse = _inverse(fgraph, node.inputs[0])
        return None if inverse is None else [Summand(inverse)]
    if isinstance(core, KroneckerProduct):
        product = kronecker_product(variable)
        return None if product is None else [Summand(product)]
    if isinstance(core, Dot):
        left, right = node.inputs
        known = left.type.ndim == 2 == right.type.ndim and _is_thin(left)
        return [Summand(ThinProduct(left, right.T))] if known else None
    outer = outer_product(variable)
    if outer is not None:
        column, row = outer
        if column.type.broadcastable[0] or row.type.broadcastable[1]:
            return None
        return [Summand(ThinProduct(column, row.T))]
    return _summands_of_elements(fgraph, variable, depth)


def _inverse(
    fgraph: FunctionGraph, matrix: Any
) -> Inverse | KroneckerInverse | ShiftedInverse | None:
    """Return what is known of the inverse of a matrix."""
    update = low_rank_update(matrix)
    if update is not None and update.pays():
        return Inverse(update)
    product = kronecker_product(matrix)
    if product is not None:
        return KroneckerInverse(product)
    shifted = shifted_kronecker_product(fgraph, matrix)
    return None if shifted is None else ShiftedInverse(shifted)


def _summands_of_elements(fgraph: FunctionGraph, variable: Any, depth: int) -> list[Summand] | None:
    op, inputs = scalar_op(variable), variable.owner.inputs
    if isinstance(op, Neg):
        return _each(_summands(fgraph, inputs[0], depth - 1), -1.0)
    if isinstance(op, Add | Sub):
        found: list[Summand] = []
        for i, part in enumerate(inputs):
            parts = _summands(fgraph, part, depth - 1)
            if isinstance(op, Sub) and i:
                parts = _each(parts, -1.0)
            if parts is None:
                return None
            found.extend(parts)
        return found
    if isinstance(op, Mul):
        rest = [part for part in inputs if long_axes(part)]
        if len(rest) != 1:
            return None
        scaled = _summands(fgraph, rest[0], depth - 1)
        return scaled and _each(scaled, *(as_scalar(one) for one in inputs if not long_axes(one)))
    if isinstance(op, TrueDiv) and not long_axes(inputs[1]):
        scaled = _summands(fgraph, inputs[0], depth - 1)
        divisor = as_scalar(inputs[1]).astype(variable.type.dtype) if scaled else None
        return scaled and _each(scaled, pt.reciprocal(divisor))
    return None


def _each(summands: list[Summand] | None, *numbers: Any) -> list[Summand] | None:
    return None if summands is None else [one.by(*numbers) for one in summands]


def _is_thin(left: Any) -> bool:
    rows, columns = left.type.shape
    return rows is not None and columns is not None and bool(2 * columns <= rows)


def product_with_structured_sum(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Multiply a thin matrix by each of the summands of a matrix of known structure."""
    if not is_product_to_make(node):
        return None
    left, right = node.inputs
    new = _times(fgraph, left, right)
    if new is not None and is_work_to_do(fgraph, node, right):
        return replaced_and_cast(node, new)
    if structured_sum(fgraph, right) is None:
        return None
    new = _times(fgraph, _turned(right), _turned(left))
    if new is not None and is_work_to_do(fgraph, node, left):
        return replaced_and_cast(node, new.T)
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
    # A summand that is an inverse has its own factor, which the other rules share.
    if not (known.cost(columns) + known.cost(columns)).is_at_most(_cost(known, columns)):
        return None
    result = known.times(thin)
    return result if other is None or n == 1 else other(result)


def _thin_factor(fgraph: FunctionGraph, right: Any) -> tuple[Any, Callable[[Any], Any] | None]:
    """Return a thin matrix that is the left factor of another, and what multiplies by the rest."""
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
    """Return what the product costs, and the inverses that would be made for it."""
    n = known.size
    factorization = term(n * n * n // 3 if known.has_inverses else 0)
    return product_cost(n, n, columns) + factorization


def diagonal_of_structured_sum(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Sum the diagonals of the summands of a matrix of known structure."""
    matrix = _whose_diagonal_is_taken(node)
    known = None if matrix is None else structured_sum(fgraph, matrix)
    if known is None or not known.is_worth_it:
        return None
    return replaced_and_cast(node, known.diagonal())


def _whose_diagonal_is_taken(node: Apply[Any]) -> Any:
    """Return the matrix of which a node takes the diagonal; None if it does not."""
    op = core_of(node)
    if isinstance(op, ExtractDiag):
        is_main = op.offset == 0 and (op.axis1, op.axis2) == (0, 1)
        return node.inputs[0] if is_main and node.inputs[0].type.ndim == 2 else None
    if type(op) is not OpFromGraph or len(op.fgraph.outputs) != 1:
        return None
    # The gradient of AllocDiag is a graph that takes the elements (0, 0), (1, 1) and so on.
    taken = op.fgraph.outputs[0].owner
    if taken is None or not isinstance(taken.op, AdvancedSubtensor):
        return None
    of, *indices = taken.inputs
    if of.type.ndim != 2 or len(indices) != 2 or of not in op.fgraph.inputs:
        return None
    outside = dict(zip(op.fgraph.inputs, node.inputs, strict=True))
    whole = outside[of]
    if tuple(getattr(taken.op, "idx_list", ())) != (0, 1):
        return None
    size = whole.type.shape[0] or whole.type.shape[1]
    known = all(_counts_all(one, outside, size) for one in indices)
    return whole if known and size is not None else None


def _counts_all(index: Any, outside: dict[Any, Any], size: int | None) -> bool:
    """Whether an index of an inner graph goes from 0 to the size, by the length of an input."""
    if isinstance(scalar_op(index), Add):
        counting = [one for one in index.owner.inputs if long_axes(one)]
        if len(counting) != 1:
            return False
        if not all(one is counting[0] or is_zero(one) for one in index.owner.inputs):
            return False
        index = counting[0]
    if index.owner is None or not isinstance(index.owner.op, ARange):
        return False
    stop = index.owner.inputs[1]
    if not counts_from_zero(index) or stop.owner is None:
        return False
    if not isinstance(stop.owner.op, Subtensor):
        return False
    shape = stop.owner.inputs[0]
    if shape.owner is None or not isinstance(shape.owner.op, Shape):
        return False
    vector = outside.get(shape.owner.inputs[0])
    return vector is not None and vector.type.shape == (size,)


def sum_of_structured_product(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Sum the elements of ``G * B`` from the summands of ``G``, with a ``B`` of known structure."""
    op = node.op
    if not isinstance(op, Sum) or node.outputs[0].type.ndim:
        return None
    found = _sum_of(fgraph, node.inputs[0], _DEPTH)
    return None if found is None else replaced_and_cast(node, found)


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
        return _sum(parts) if isinstance(op, Add) else parts[0] - parts[1]
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
        return None if inner is None else inner * product_of(map(as_scalar, numbers))
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
    return result * product_of(map(as_scalar, numbers))


def _columns(matrix: Any) -> int:
    """Return how many columns the sum of the products of elements multiplies, or as good as."""
    if isinstance(matrix, Kronecker):
        return sum(matrix.sizes)
    return matrix.rank if isinstance(matrix, ThinProduct) else 1


def _turned(variable: Any) -> Any:
    inner = transpose_of(variable)
    return inner if inner is not None and inner.type.ndim == 2 else variable.T


def _product(left: Any, right: Any) -> Any:
    """Return the matrix product."""
    return left @ right


def _sum(terms: list[Any]) -> Any:
    first, *others = terms
    for one in others:
        first = first + one
    return first
