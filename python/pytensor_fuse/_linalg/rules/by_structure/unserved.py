"""The reasons why rules leave a matrix of a known structure alone.

Such a matrix nearly is ``D + U U'``, banded or a Kronecker product, and is factorized as a whole.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from pytensor.scalar.basic import Add, Sub
from pytensor.tensor.linalg.decomposition.cholesky import Cholesky
from pytensor.tensor.linalg.inverse import MatrixInverse
from pytensor.tensor.linalg.products import KroneckerProduct
from pytensor.tensor.linalg.solvers.general import Solve
from pytensor.tensor.linalg.summary import Det

from pytensor_fuse._linalg.notes import note_unserved
from pytensor_fuse._linalg.rules.by_structure.banded import is_too_wide
from pytensor_fuse._linalg.structure.diagonal import diagonal_of, is_diagonal
from pytensor_fuse._linalg.structure.kronecker import kronecker_product, shifted_kronecker_product
from pytensor_fuse._linalg.structure.low_rank import low_rank_update, thin_square
from pytensor_fuse._linalg.structure.matrices import (
    core_of,
    scalar_op,
    scaled_parts,
    summands_of,
    transpose_of,
    without_expansion,
    without_transposes,
)
from pytensor_fuse._linalg.structure.signs import Sign, sign_of
from pytensor_fuse._linalg.structure.summands import structured_inverse

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph


class Unserved(Enum):
    """The reasons why the structure of a matrix is not used."""

    SIZES_NOT_STATIC = 1
    FACTORS_NOT_SQUARE = 2
    FACTORS_NOT_SYMMETRIC = 3
    SHIFT_NOT_A_NUMBER = 4
    DIAGONAL_NOT_POSITIVE = 5
    NO_WIN_BY_SHAPES = 6
    BATCHED_RIGHT_HAND_SIDES = 7
    FACTOR_ASKED_FOR = 8


def note_why_unserved(fgraph: FunctionGraph, node: Apply[Any]) -> None:
    """Note why the rules have left a node that works on a matrix of known structure."""
    core = core_of(node)
    if type(core) not in (Cholesky, Det, MatrixInverse, Solve):
        return
    matrix: Any
    matrix, _ = without_transposes(without_expansion(node.inputs[0]))
    if matrix.type.ndim != 2 or matrix.owner is None or matrix.type.numpy_dtype.kind != "f":
        return
    reason = _why_not_kronecker(fgraph, matrix) or _why_not_low_rank(matrix)
    if reason is None and is_too_wide(matrix):
        reason = Unserved.NO_WIN_BY_SHAPES
    if reason is None and type(core) in (Cholesky, Solve) and structured_inverse(fgraph, matrix):
        # The rules know the structure; the reason is the work.
        if type(core) is Cholesky:
            reason = Unserved.FACTOR_ASKED_FOR
        else:
            is_batch = node.inputs[1].type.ndim != core.b_ndim
            reason = Unserved.BATCHED_RIGHT_HAND_SIDES if is_batch else Unserved.NO_WIN_BY_SHAPES
    if reason is not None:
        note_unserved(fgraph, matrix, reason)


def _why_not_kronecker(fgraph: FunctionGraph, matrix: Any) -> Unserved | None:
    op = scalar_op(matrix)
    product, rest = _kronecker_in(matrix), None
    if product is None and isinstance(op, Add | Sub) and len(matrix.owner.inputs) == 2:
        parts = [(_kronecker_in(one), one) for one in matrix.owner.inputs]
        product = next((found for found, _ in parts if found is not None), None)
        rest = next((one for found, one in parts if found is None), None)
        if rest is None or not is_diagonal(rest):
            return None
    if product is None:
        return None
    shapes = [one.type.shape for one in product.owner.inputs]
    if any(len(shape) != 2 for shape in shapes):
        return None
    if any(None not in shape and shape[0] != shape[1] for shape in shapes):
        return Unserved.FACTORS_NOT_SQUARE
    if any(None in shape for shape in shapes):
        return Unserved.SIZES_NOT_STATIC
    if rest is None or shifted_kronecker_product(fgraph, matrix) is not None:
        return None
    if diagonal_of(rest).type.ndim:
        return Unserved.SHIFT_NOT_A_NUMBER
    known = kronecker_product(product)
    if known is not None and not known.pays():
        return Unserved.NO_WIN_BY_SHAPES
    return Unserved.FACTORS_NOT_SYMMETRIC


def _kronecker_in(variable: Any) -> Any:
    """Return the Kronecker product behind transpositions and numbers; None if there is none."""
    if variable.owner is None:
        return None
    if isinstance(variable.owner.op, KroneckerProduct):
        return variable
    inner = transpose_of(variable)
    if inner is not None:
        return _kronecker_in(inner)
    scaled = scaled_parts(variable)
    return None if scaled is None else _kronecker_in(scaled.whole)


def _why_not_low_rank(matrix: Any) -> Unserved | None:
    parts = list(summands_of(matrix))
    others = [one for one in parts if not is_diagonal(one)]
    if not others or len(others) == len(parts):
        return None
    squares = [thin_square(one) for one in others]
    if any(one is None for one in squares):
        return None
    update = low_rank_update(matrix)
    if update is not None:
        is_thin = update.rank < update.size
        return Unserved.NO_WIN_BY_SHAPES if is_thin and not update.pays() else None
    shapes = [matrix.type.shape, *(one.base.type.shape for one in squares if one is not None)]
    if all(n is None for n in shapes[0]) or any(shape[1] is None for shape in shapes):
        return Unserved.SIZES_NOT_STATIC
    diagonals = [diagonal_of(one) for one in parts if is_diagonal(one)]
    if any(sign_of(one) is not Sign.POSITIVE for one in diagonals):
        return Unserved.DIAGONAL_NOT_POSITIVE
    return None
