"""Positive definite and semidefinite matrices by their form, in exact arithmetic.

A definite matrix may be so close to a singular one that it is not definite as rounded. The proofs
are in `docs/reference/linalg_rules.md`.
"""

from __future__ import annotations

import math
from enum import IntEnum
from itertools import permutations
from typing import Any

import numpy as np
from pytensor.graph.basic import Constant
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.basic import Alloc, AllocDiag, Eye
from pytensor.tensor.linalg.constructors import BlockDiagonal
from pytensor.tensor.linalg.decomposition.cholesky import Cholesky
from pytensor.tensor.linalg.inverse import MatrixInverse
from pytensor.tensor.linalg.products import KroneckerProduct
from pytensor.tensor.shape import SpecifyShape
from pytensor.tensor.subtensor import AdvancedSubtensor

from pytensor_fuse._linalg.structure.definite.kernels import (
    column_of,
    is_gram,
    is_kernel,
    is_matern,
    row_of,
)
from pytensor_fuse._linalg.structure.diagonal import is_identity, is_of_known_size
from pytensor_fuse._linalg.structure.matrices import core_of, is_real_matrix, same, transpose_of
from pytensor_fuse._linalg.structure.signs import Sign, is_usually_not_zero, sign_of, sign_of_power
from pytensor_fuse._linalg.structure.terms import Operand, Product, Term, terms_of

# The depth of nested matrices.
_DEPTH = 8

# A smaller constant multiple of the identity does not count: it may be lost in rounding.
_SMALLEST_SHIFT = 1e-8

# The largest number of rows of a constant that is examined.
_MOST_ROWS = 200


class Definiteness(IntEnum):
    """The known definiteness of a symmetric matrix; larger values are stronger, as in `Sign`.

    The sum of two has the larger one, if both are known. The elementwise product has at least the
    smaller one (Schur), and so has the product with a number of such a sign.
    """

    UNKNOWN = Sign.UNKNOWN
    SEMIDEFINITE = Sign.NONNEGATIVE
    # Semidefinite, and definite unless an input of the graph is 0, whose square makes it definite.
    USUALLY_DEFINITE = Sign.USUALLY_POSITIVE
    DEFINITE = Sign.POSITIVE


def definiteness(matrix: Any, depth: int = _DEPTH) -> Definiteness:
    """Return the definiteness of a matrix by its form; unknown if it is not of 64-bit floats.

    Rounding to single precision often makes a definite matrix indefinite.
    """
    if depth <= 0 or not is_real_matrix(matrix) or matrix.type.dtype != "float64":
        return Definiteness.UNKNOWN
    grades = [_of_term(term, depth) for term in terms_of(matrix)]
    known = max(grades) if min(grades) > 0 else 0
    return Definiteness(known)


def _of_term(term: Term, depth: int) -> int:
    """Return the definiteness of a term, as a value that also stands for a sign."""
    if not 0 < term.coefficient < math.inf:
        return Sign.UNKNOWN
    number = min((sign_of_power(*power) for power in term.powers), default=Sign.POSITIVE)
    if number == Sign.UNKNOWN:
        return Sign.UNKNOWN
    scales, matrices = _without_scales(list(term.parts))
    diagonals = [part for part in matrices if _is_identity(part)]
    if diagonals and len(matrices) == 1 and not scales and not term.powers:
        return number if term.coefficient >= _SMALLEST_SHIFT else Sign.NONNEGATIVE
    lines = [part for part in matrices if _line(part) is not None]
    if lines and diagonals and len(lines) + len(diagonals) == len(matrices):
        # A column times the identity: a diagonal.
        return min(number, *scales, _sign_of_lines([_line(part) for part in lines]))
    if lines:
        return Sign.UNKNOWN
    if not matrices:
        # A column times the same row, or the same number everywhere.
        return Sign.NONNEGATIVE
    return min(number, *scales, _of_schur_product(matrices, depth))


def _of_schur_product(parts: list[Any], depth: int) -> int:
    left = list(parts)
    found: list[int] = []
    for first, second in permutations(parts, 2):
        # The same variable may be there more than once.
        if left.count(first) and left.count(second) and is_matern(first, second):
            left.remove(first)
            left.remove(second)
            found.append(Sign.NONNEGATIVE)
    return min([*found, *(_of_part(part, depth) for part in left)])


def _without_scales(parts: list[Any]) -> tuple[list[int], list[Any]]:
    """Take out columns with rows that have the same numbers: ``s s' * A`` is ``S A S``.

    Returns
    -------
    list of int
        For each pair, the definiteness of a definite matrix after the scaling.
    list of variables and products
        The others.
    """
    found: list[int] = []
    rows = [part for part in parts if row_of(part) is not None]
    others = [part for part in parts if row_of(part) is None]
    for column in [part for part in others if column_of(part) is not None]:
        vector = column_of(column)
        at = next((i for i, row in enumerate(rows) if same(row_of(row), vector)), None)
        if at is not None:
            del rows[at]
            others.remove(column)
            found.append(_of_scale(vector))
    return found, others + rows


def _of_scale(vector: Any) -> int:
    known = sign_of(vector)
    if known is Sign.POSITIVE:
        return known
    return Sign.USUALLY_POSITIVE if is_usually_not_zero(vector) else Sign.NONNEGATIVE


def _sign_of_lines(vectors: list[Any]) -> int:
    """Return the sign of a product of vectors, in which equal ones make squares."""
    found: int = Sign.POSITIVE
    left = list(vectors)
    while left:
        vector = left.pop()
        times = 1 + sum(same(one, vector) for one in left)
        left = [one for one in left if not same(one, vector)]
        found = min(found, sign_of_power(vector, times))
    return found


def _line(part: Any) -> Any:
    vector = column_of(part)
    return row_of(part) if vector is None else vector


def _is_identity(part: Any) -> bool:
    """Whether a matrix that is known to be square is an identity.

    A matrix with an axis of length 1 is broadcast.
    """
    if isinstance(part, Product) or part.owner is None or not isinstance(part.owner.op, Eye):
        return False
    if not is_real_matrix(part):
        return False
    offset = part.owner.inputs[2]
    return isinstance(offset, Constant) and int(offset.data) == 0


def _of_part(part: Any, depth: int) -> int:
    if isinstance(part, Product):
        return _of_product(part.operands, depth)
    if not is_real_matrix(part) or part.type.dtype != "float64":
        return Sign.UNKNOWN
    if isinstance(part, Constant):
        return _of_constant(part.data)
    inner = transpose_of(part)
    if inner is not None:
        return definiteness(inner, depth - 1)
    if part.owner is None:
        return Sign.UNKNOWN
    if _is_identity(part):
        return Sign.POSITIVE
    if is_kernel(part):
        return Sign.NONNEGATIVE
    inputs = part.owner.inputs
    match core_of(part.owner):
        case AllocDiag(offset=0):
            return sign_of(inputs[0])
        case Alloc() if all(inputs[0].type.broadcastable):
            return min(sign_of(inputs[0]), Sign.NONNEGATIVE)
        case KroneckerProduct() | BlockDiagonal() if all(map(_is_square, inputs)):
            return min(definiteness(one, depth - 1) for one in inputs)
        case AdvancedSubtensor() if _picks_rows_and_columns(part.owner):
            return min(definiteness(inputs[0], depth - 1), Sign.NONNEGATIVE)
        case MatrixInverse() | SpecifyShape() | CheckAndRaise():
            return definiteness(inputs[0], depth - 1)
    # A sum that is a factor.
    [term, *others] = terms_of(part)
    return definiteness(part, depth - 1) if others or term.parts != (part,) else Sign.UNKNOWN


def _picks_rows_and_columns(node: Any) -> bool:
    """Whether a node takes rows of a matrix, possibly repeated, and the same columns."""
    _, *indices = node.inputs
    if len(indices) != 2 or tuple(getattr(node.op, "idx_list", ())) != (0, 1):
        return False
    down, across = indices
    turned = transpose_of(across)
    is_column = down.type.ndim == 2 and down.type.broadcastable == (False, True)
    return is_column and turned is not None and same(turned, down)


def _is_square(block: Any) -> bool:
    """Whether a part of a square matrix is square by its form."""
    if is_of_known_size(block):
        return True
    return any(
        is_gram(part) if isinstance(part, Product) else is_kernel(part) or is_identity(part)
        for term in terms_of(block)
        for part in term.parts
    )


def _of_product(operands: tuple[Operand, ...], depth: int) -> int:
    """Return the definiteness of ``X X'`` and of ``B A B'``."""
    if any(one.matrix.type.dtype != "float64" for one in operands):
        return Sign.UNKNOWN
    half = len(operands) // 2
    for first, last in zip(operands[:half], reversed(operands), strict=False):
        if first.is_turned == last.is_turned or not same(first.matrix, last.matrix):
            return Sign.UNKNOWN
    if len(operands) % 2:
        middle = definiteness(operands[half].matrix, depth - 1)
        return min(middle, Sign.NONNEGATIVE)
    first = operands[0].matrix
    is_factor = isinstance(core_of(first.owner), Cholesky) and is_real_matrix(first)
    is_definite = is_factor and is_gram(Product(operands))
    return Sign.POSITIVE if is_definite else Sign.NONNEGATIVE


def _of_constant(data: Any) -> int:
    """Return definite if all eigenvalues are larger than their rounding errors."""
    rows, columns = data.shape
    if rows != columns or rows > _MOST_ROWS or not np.all(np.isfinite(data)):
        return Sign.UNKNOWN
    if not np.array_equal(data, data.T):
        return Sign.UNKNOWN
    values = np.linalg.eigvalsh(data)
    margin = 100 * rows * np.finfo(float).eps * np.max(np.abs(values), initial=0)
    return Sign.POSITIVE if np.min(values, initial=math.inf) > margin else Sign.UNKNOWN
