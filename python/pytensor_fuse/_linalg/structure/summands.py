"""Square matrices as sums of diagonal, thin, Kronecker and inverse matrices.

Each kind of summand knows its product with a thin matrix, its diagonal, its trace and its partial
traces.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytensor.tensor as pt
from pytensor.scalar.basic import Add, Neg, Sub, TrueDiv
from pytensor.tensor.linalg.inverse import MatrixInverse
from pytensor.tensor.linalg.products import KroneckerProduct
from pytensor.tensor.math import Dot

from pytensor_fuse._linalg.costs import Cost, Length, term
from pytensor_fuse._linalg.structure.diagonal import diagonal_of, is_of_known_size, sizes_of
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
from pytensor_fuse._linalg.structure.low_rank import LowRankUpdate, low_rank_update
from pytensor_fuse._linalg.structure.matrices import (
    as_scalar,
    core_of,
    is_real_matrix,
    product_of,
    scalar_op,
    scaled_parts,
    sum_of,
    transpose_of,
)
from pytensor_fuse._linalg.structure.outer_products import outer_product
from pytensor_fuse._linalg.structure.woodbury import Woodbury

if TYPE_CHECKING:
    from pytensor.graph.fg import FunctionGraph

# The depth of sums and products that is searched.
_DEPTH: Final = 8


class Diagonal(NamedTuple):
    """A diagonal matrix.

    Attributes
    ----------
    entries
        Its diagonal, or the number by which the identity is multiplied.
    sizes
        The numbers of rows by each of its parts.
    """

    entries: Any
    sizes: tuple[Any, ...]

    def of_size(self, n: int) -> Diagonal:
        """Return it, checked to have a number of rows."""
        unknown = [size for size in self.sizes if not isinstance(size, int)]
        return self._replace(entries=if_equal(self.entries, n, *unknown)) if unknown else self

    def turned(self) -> Diagonal:
        """Return the transpose."""
        return self

    def cost(self, n: int, columns: Length) -> Cost:
        """Return the cost of a product with some columns."""
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
        """The number of columns of both."""
        rank: int = self.left.type.shape[1]
        return rank

    def turned(self) -> ThinProduct:
        """Return the transpose."""
        return ThinProduct(self.right, self.left)

    def cost(self, n: int, columns: Length) -> Cost:
        """Return the cost of a product with some columns."""
        return term(4, n, self.rank, columns)

    def times(self, right: Any) -> Any:
        """Return the product with a matrix."""
        return self.left @ (self.right.T @ right)

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
        """Return the cost of a product with some columns."""
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
        """Return None: no cheaper form is known."""


_INVERSES: Final = (Inverse, KroneckerInverse, ShiftedInverse)


class Summand(NamedTuple):
    """A matrix of known structure times numbers."""

    matrix: Diagonal | ThinProduct | Kronecker | Inverse | KroneckerInverse | ShiftedInverse
    numbers: tuple[Any, ...] = ()

    def of_size(self, n: int) -> Summand:
        """Return it, checked to have a number of rows."""
        if not isinstance(self.matrix, Diagonal):
            return self
        return self._replace(matrix=self.matrix.of_size(n))

    def by(self, *numbers: Any) -> Summand:
        """Return the summand times more numbers."""
        return self._replace(numbers=(*self.numbers, *numbers))

    def scaled(self, result: Any) -> Any:
        """Return a result for the matrix, times the numbers."""
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
        """Return the cost of a product with some columns."""
        costs = [one.matrix.cost(self.size, columns) for one in self.summands]
        return sum(costs[1:], costs[0])

    def times(self, right: Any) -> Any:
        """Return the product with a matrix."""
        return sum_of([one.scaled(one.matrix.times(right)) for one in self.summands])

    def diagonal(self) -> Any:
        """Return the diagonal."""
        return sum_of([one.scaled(one.matrix.diagonal(self.size)) for one in self.summands])

    def trace(self) -> Any:
        """Return the trace."""
        return sum_of([one.scaled(one.matrix.trace(self.size)) for one in self.summands])

    def partial_trace(self, out: TracedOut) -> Any:
        """Return a partial trace; None if that of some summand is not known."""
        found = [one.matrix.partial_trace(out) for one in self.summands]
        if self.size != prod(out.sizes) or any(one is None for one in found):
            return None
        return sum_of([one.scaled(of) for one, of in zip(self.summands, found, strict=True)])

    def times_elements_of(self, other: StructuredSum) -> Any:
        """Return the sum of the products of elements with a sum that has no inverses; else None."""
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
        return sum_of(found)

    @property
    def is_worth_it(self) -> bool:
        """Whether other rules do not cover it: it is a sum, or an inverse."""
        return len(self.summands) > 1 or self.has_inverses

    @property
    def has_inverses(self) -> bool:
        """Whether some summand is an inverse."""
        return any(isinstance(one.matrix, _INVERSES) for one in self.summands)


def structured_sum(fgraph: FunctionGraph, variable: Any) -> StructuredSum | None:
    """Return the summands of a square matrix; None if the structure of one is unknown."""
    if not is_real_matrix(variable):
        return None
    sizes = {size for size in variable.type.shape if size is not None}
    summands = _summands(fgraph, variable, _DEPTH)
    if None in variable.type.shape and all(
        isinstance(one.matrix, ThinProduct) for one in summands or ()
    ):
        # All other summands are square.
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
        found = _summands(fgraph, inner, depth - 1)
        return found and [one._replace(matrix=one.matrix.turned()) for one in found]
    core = core_of(node)
    if type(core) is MatrixInverse:
        inverse = structured_inverse(fgraph, node.inputs[0])
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


def structured_inverse(
    fgraph: FunctionGraph, matrix: Any
) -> Inverse | KroneckerInverse | ShiftedInverse | None:
    """Return the inverse of a matrix by its parts; None if it has none, or they do not pay."""
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
        summands: list[Summand] = []
        for i, part in enumerate(inputs):
            parts = _summands(fgraph, part, depth - 1)
            if isinstance(op, Sub) and i:
                parts = _each(parts, -1.0)
            if parts is None:
                return None
            summands.extend(parts)
        return summands
    scaled = scaled_parts(variable)
    found = None if scaled is None else _summands(fgraph, scaled.whole, depth - 1)
    if scaled is None or found is None:
        return None
    numbers = [as_scalar(one) for one in scaled.numbers]
    if isinstance(op, TrueDiv):
        numbers = [pt.reciprocal(one.astype(variable.type.dtype)) for one in numbers]
    return _each(found, *numbers)


def _each(summands: list[Summand] | None, *numbers: Any) -> list[Summand] | None:
    return None if summands is None else [one.by(*numbers) for one in summands]


def _is_thin(left: Any) -> bool:
    rows, columns = left.type.shape
    return rows is not None and columns is not None and bool(2 * columns <= rows)
