"""Work on a tridiagonal matrix is done on its three diagonals, by LU with partial pivoting.

LAPACK's gttrf and gttrs, which PyTensor has ops for, take time in proportion to the length, and
have the error bounds of the LU factorization of a whole matrix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Constant
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.scalar.basic import Add, Mul, Neg, Sub, TrueDiv
from pytensor.tensor.basic import AllocDiag, Eye
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.linalg.inverse import MatrixInverse
from pytensor.tensor.linalg.solvers.general import Solve
from pytensor.tensor.linalg.solvers.tridiagonal import LUFactorTridiagonal, tridiagonal_lu_solve
from pytensor.tensor.linalg.summary import Det
from pytensor.tensor.math import Dot

from pytensor_fuse._linalg.determinants import of_uses
from pytensor_fuse._linalg.low_rank_updates import diagonal_of
from pytensor_fuse._linalg.matrices import (
    as_scalar,
    core_of,
    is_real_matrix,
    long_axes,
    same,
    scalar_op,
    transpose_of,
)
from pytensor_fuse._linalg.outer_columns import for_columns
from pytensor_fuse._pytensor.assumptions import is_known_tridiagonal

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

# How deep sums and products are looked through.
_DEPTH: Final = 8

# SciPy's gttrf takes no less: shorter ones are made longer by an identity below.
_SHORTEST: Final = 3


class Tridiagonal(NamedTuple):
    """A tridiagonal matrix, or its transpose, by its LU factorization.

    Attributes
    ----------
    factors
        What `LUFactorTridiagonal` gives, of a matrix that is made longer if it may be too short.
    size
        How many rows the matrix itself has.
    turned
        Whether the transpose is meant.
    is_longer
        Whether the factors are of a longer matrix.
    """

    factors: tuple[Any, ...]
    size: Any
    turned: bool
    is_longer: bool

    def solved(self, right: Any) -> Any:
        """Return the solution for a vector, or for the columns of a matrix."""
        # Numba's gttrs would read what is not there.
        shape = (self.size, *([None] * (right.type.ndim - 1)))
        right = pt.specify_shape(right, shape)
        if self.is_longer:
            below = pt.zeros((_SHORTEST, *tuple(right.shape)[1:]), dtype=right.type.dtype)
            right = pt.concatenate([right, below], axis=0)
        result: Any = tridiagonal_lu_solve(
            self.factors,
            right,
            b_ndim=right.type.ndim,
            transposed=self.turned,
        )
        return result[: self.size] if self.is_longer else result


def tridiagonal(fgraph: FunctionGraph, matrix: Any) -> Tridiagonal | None:
    """Return a matrix by its factorization; None if it is not known to be tridiagonal."""
    if not is_real_matrix(matrix):
        return None
    turned = False
    while (inner := transpose_of(matrix)) is not None and inner.type.ndim == 2:
        matrix, turned = inner, not turned
    diagonals = _diagonals(matrix, _DEPTH)
    if diagonals is None and is_known_tridiagonal(fgraph, matrix):
        diagonals = {at: pt.diagonal(matrix, offset=at) for at in (-1, 0, 1)}
    if diagonals is None or not {-1, 1} & diagonals.keys() or not diagonals.keys() <= {-1, 0, 1}:
        return None
    lengths = [(at, one) for at, one in sorted(diagonals.items()) if one.type.ndim]
    if not lengths or any(one.type.dtype != matrix.type.dtype for one in diagonals.values()):
        return None
    at, longest = next((pair for pair in lengths if not pair[0]), lengths[0])
    known = matrix.type.shape[0] or matrix.type.shape[1]
    if known is None and longest.type.shape[0] is not None:
        known = longest.type.shape[0] + abs(at)
    size = longest.shape[0] + abs(at) if known is None else known
    beside = pt.maximum(size - 1, 0) if known is None else max(known - 1, 0)
    zero = pt.zeros((), dtype=matrix.type.dtype)
    lower, main, upper = (
        _with_length(diagonals.get(at, zero), beside if at else size) for at in (-1, 0, 1)
    )
    is_longer = known is None or known < _SHORTEST
    if is_longer:
        # What is beside the diagonal ends before the identity begins.
        main = pt.concatenate([main, pt.ones(_SHORTEST, dtype=main.type.dtype)])
        lower, upper = (_with_zeros(one, main) for one in (lower, upper))
    factorize: Any = Blockwise(LUFactorTridiagonal())
    return Tridiagonal(tuple(factorize(lower, main, upper)), size, turned, is_longer)


def _with_length(diagonal: Any, length: Any) -> Any:
    """Return a vector, checked that it is so long: Numba would read what is not there."""
    if not diagonal.type.ndim:
        return pt.full((length,), diagonal)
    return pt.specify_shape(diagonal, (length,))


def _with_zeros(diagonal: Any, main: Any) -> Any:
    missing = main.shape[0] - 1 - diagonal.shape[0]
    return pt.concatenate([diagonal, pt.zeros((missing,), dtype=diagonal.type.dtype)])


def _diagonals(variable: Any, depth: int) -> dict[int, Any] | None:
    """Return the diagonals of a matrix that is 0 elsewhere, by their offsets; None if not known.

    Each is a vector, or a number for a diagonal of which all elements are that.
    """
    if depth == 0 or variable.type.ndim != 2 or any(variable.type.broadcastable):
        return None
    main = diagonal_of(variable)
    if main is not None:
        return {0: main}
    if isinstance(variable, Constant):
        return _diagonals_of_constant(variable)
    node = variable.owner
    if node is None:
        return None
    inner = transpose_of(variable)
    if inner is not None:
        found = _diagonals(inner, depth - 1)
        return None if found is None else {-at: one for at, one in found.items()}
    if isinstance(node.op, AllocDiag):
        return {node.op.offset: node.inputs[0]} if node.inputs[0].type.ndim == 1 else None
    if isinstance(node.op, Eye):
        rows, columns, offset = node.inputs
        if not (same(rows, columns) and isinstance(offset, Constant)):
            return None
        return {int(offset.data): pt.ones((), dtype=variable.type.dtype)}
    return _diagonals_of_elements(variable, depth)


def _diagonals_of_constant(constant: Any) -> dict[int, Any] | None:
    data = constant.data
    n, columns = data.shape
    inside = {at: np.diagonal(data, at) for at in (-1, 0, 1)}
    count = sum(np.count_nonzero(one) for one in inside.values())
    if n != columns or n < _SHORTEST or np.count_nonzero(data) != count:
        return None
    return {at: pt.constant(one.copy()) for at, one in inside.items()}


def _diagonals_of_elements(variable: Any, depth: int) -> dict[int, Any] | None:
    op, inputs = scalar_op(variable), variable.owner.inputs
    if isinstance(op, Neg):
        return _each(_diagonals(inputs[0], depth - 1), lambda one: -one)
    if isinstance(op, Mul):
        rest = [part for part in inputs if long_axes(part)]
        numbers = [as_scalar(part) for part in inputs if not long_axes(part)]
        if len(rest) != 1:
            return None
        return _each(_diagonals(rest[0], depth - 1), lambda one: pt.mul(one, *numbers))
    if isinstance(op, TrueDiv) and not long_axes(inputs[1]):
        divisor = as_scalar(inputs[1])
        return _each(_diagonals(inputs[0], depth - 1), lambda one: one / divisor)
    if not isinstance(op, Add | Sub):
        return None
    total: dict[int, Any] = {}
    for i, part in enumerate(inputs):
        found = _diagonals(part, depth - 1)
        if found is None:
            return None
        for at, one in found.items():
            term = -one if i and isinstance(op, Sub) else one
            total[at] = total[at] + term if at in total else term
    return total


def _each(diagonals: dict[int, Any] | None, change: Any) -> dict[int, Any] | None:
    return None if diagonals is None else {at: change(one) for at, one in diagonals.items()}


def tridiagonal_determinant(fgraph: FunctionGraph, node: Apply[Any]) -> dict[Any, Any] | None:
    """Compute a determinant, its sign and its logarithm from the factors of three diagonals."""
    if type(core_of(node)) is not Det or node.outputs[0].type.ndim:
        return None
    known = tridiagonal(fgraph, node.inputs[0])
    if known is None:
        return None
    _, diagonal, _, _, pivots = known.factors
    # LAPACK's pivots count from 1, and each row is left where it is or swapped with the next.
    swaps = pt.neq(pivots, pt.arange(pivots.shape[0]) + 1).sum()
    permutation = (1 - 2 * (swaps % 2)).astype(diagonal.type.dtype)
    found = of_uses(
        fgraph,
        node.outputs[0],
        permutation * pt.prod(diagonal),
        permutation * pt.prod(pt.sign(diagonal)),
        pt.log(pt.abs(diagonal)).sum(),
    )
    return {old: _as(old, new) for old, new in found.items()}


def tridiagonal_solve(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Solve with the factors of three diagonals."""
    core = core_of(node)
    if type(core) is not Solve or node.inputs[1].type.ndim != core.b_ndim:
        return None
    matrix, right = node.inputs
    if right.type.dtype != matrix.type.dtype:
        return None
    known = tridiagonal(fgraph, matrix)
    if known is None:
        return None
    new = known.solved(right) if core.b_ndim == 1 else for_columns(right, known.solved)
    return None if new is None else [_as(node.outputs[0], new)]


def product_with_tridiagonal_inverse(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Solve, instead of multiplying with an inverse."""
    if not isinstance(core_of(node), Dot) or node.outputs[0].type.ndim != 2:
        return None
    left: Any
    right: Any
    left, right = node.inputs
    for one, other, turned in ((left, right, False), (right, left, True)):
        known = _inverted(fgraph, one)
        if known is None or other.type.dtype != one.type.dtype:
            continue
        if not turned:
            new = for_columns(other, known.solved)
        else:
            new = for_columns(other.T, known._replace(turned=not known.turned).solved)
        if new is not None:
            return [_as(node.outputs[0], new.T if turned else new)]
    return None


def _inverted(fgraph: FunctionGraph, inverse: Any) -> Tridiagonal | None:
    """Return the tridiagonal matrix that a matrix is the inverse of; None if it is not known."""
    turned = False
    while (inner := transpose_of(inverse)) is not None and inner.type.ndim == 2:
        inverse, turned = inner, not turned
    if type(core_of(inverse.owner)) is not MatrixInverse:
        return None
    known = tridiagonal(fgraph, inverse.owner.inputs[0])
    return known if known is None or not turned else known._replace(turned=not known.turned)


def tridiagonal_inverse(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Solve for the identity where the inverse is needed entry by entry."""
    if type(core_of(node)) is not MatrixInverse:
        return None
    known = tridiagonal(fgraph, node.inputs[0])
    if known is None:
        return None
    new = known.solved(pt.eye(known.size, dtype=node.inputs[0].type.dtype))
    return [_as(node.outputs[0], new)]


def _as(old: Any, new: Any) -> Any:
    if new.type.dtype != old.type.dtype:
        new = new.astype(old.type.dtype)
    copy_stack_trace(old, new)
    return new
