"""Kernels: functions of the distances of points that make semidefinite matrices.

A symmetric matrix ``D`` is conditionally negative if ``c' D c <= 0`` for each ``c`` whose elements
sum to 0. By Schoenberg's theorem, that holds if and only if ``exp(-t D)`` is semidefinite for each
``t >= 0``. Examples are matrices of squared distances, and functions of them that
`docs/reference/linalg_rules.md` lists.
"""

from __future__ import annotations

import math
from typing import Any

from pytensor.scalar.basic import Abs, Clip, Cos, Exp, Log1p, Pow, ScalarMaximum, Sin, Sqr, Sqrt
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Sum
from pytensor.tensor.shape import Reshape

from pytensor_fuse._linalg.structure.definite.coordinates import is_sum_over_coordinates
from pytensor_fuse._linalg.structure.matrices import are_paired, same, scalar_op
from pytensor_fuse._linalg.structure.signs import Sign, number_of, sign_of_power
from pytensor_fuse._linalg.structure.terms import (
    Product,
    Term,
    multiplied,
    same_part,
    same_powers,
    terms_of,
)

# The largest relative difference of rounded constants of a kernel, such as sqrt(5)^2 / 3.
_TOLERANCE = 1e-12


def is_nonnegative(term: Term, coefficient: float) -> bool:
    """Whether a number times the powers in a term is not negative."""
    if not 0 <= coefficient < math.inf:
        return False
    return all(sign_of_power(base, exponent) >= Sign.NONNEGATIVE for base, exponent in term.powers)


def is_gram(part: Any) -> bool:
    """Whether a part is ``X X'`` or ``X' X``."""
    if not isinstance(part, Product) or len(part.operands) != 2:
        return False
    first, second = part.operands
    return first.is_turned != second.is_turned and same(first.matrix, second.matrix)


def column_of(part: Any) -> Any:
    """Return the vector of a column; None for other parts."""
    return _line_of(part, (False, True))


def row_of(part: Any) -> Any:
    """Return the vector of a row; None for other parts."""
    return _line_of(part, (True, False))


def is_kernel(variable: Any) -> bool:
    """Whether a function of distances makes a semidefinite matrix with a positive diagonal."""
    match scalar_op(variable):
        case Exp():
            return _is_conditionally_positive(terms_of(variable.owner.inputs[0]))
        case Cos():
            return _is_difference(variable.owner.inputs[0])
        case Pow():
            # A power of a positive base is a mixture of exp(-s D) with positive weights.
            base, exponent = variable.owner.inputs
            return _is_positive_distance(base) and _is_not_positive(exponent)
    return False


def is_matern(polynomial: Any, exponential: Any) -> bool:
    """Whether ``(1 + a) exp(-a)`` or ``(1 + a + a^2 / 3) exp(-a)``, with ``a`` of distances."""
    if isinstance(polynomial, Product) or isinstance(exponential, Product):
        return False
    if not isinstance(scalar_op(exponential), Exp):
        return False
    [decay, *others] = terms_of(exponential.owner.inputs[0])
    if others or len(decay.parts) != 1 or not is_nonnegative(decay, -decay.coefficient):
        return False
    [distance] = decay.parts
    if not _is_distance_root(distance):
        return False
    linear = decay._replace(coefficient=-decay.coefficient)
    quadratic = multiplied(linear, linear)
    if isinstance(scalar_op(distance), Sqrt):
        alike = quadratic._replace(parts=(distance.owner.inputs[0],))
    else:
        alike = quadratic
    terms = terms_of(polynomial)
    start = [Term(1.0, (), ()), linear]
    third = [_times(one, 1 / 3) for one in (quadratic, alike)]
    wanted = [start, *([*start, one] for one in third)]
    return any(are_paired(one, terms, _is_same_term) for one in wanted)


def is_distance(variable: Any) -> bool:
    """Whether a matrix is conditionally negative without negative elements, as distances are."""
    terms = _without_quadratic_form(terms_of(variable))
    return terms is not None and all(_is_part_of_distance(term) for term in terms)


def _is_part_of_distance(term: Term) -> bool:
    if not is_nonnegative(term, term.coefficient):
        return False
    if not term.parts:
        return True
    if len(term.parts) == 1:
        return _is_distance_part(term.parts[0])
    return len(term.parts) == 2 and _is_square_of_root(*term.parts)


def _is_distance_part(part: Any) -> bool:
    """Whether a part is a function of distances whose values are distances."""
    if isinstance(part, Product):
        return False
    if is_sum_over_coordinates(part):
        return True
    match scalar_op(part):
        case ScalarMaximum():
            return _is_cut_at_zero(part.owner.inputs)
        case Clip():
            value, low, high = part.owner.inputs
            return number_of(high) == math.inf and _is_cut_at_zero([value, low])
        case Sqrt() | Log1p():
            return is_distance(part.owner.inputs[0])
        case Pow():
            base, exponent = part.owner.inputs
            power = number_of(exponent)
            return power is not None and 0 < power <= 1 and is_distance(base)
        case Abs():
            return _is_difference(part.owner.inputs[0])
    return False


def _is_square_of_root(first: Any, second: Any) -> bool:
    if not same_part(first, second) or isinstance(first, Product):
        return False
    if isinstance(scalar_op(first), Sin):
        # The square of the sine is half of 1 less a cosine.
        return _is_difference(first.owner.inputs[0])
    return _is_distance_root(first) or _is_difference(first)


def _is_distance_root(part: Any) -> bool:
    """Whether a part is nonnegative, and its square conditionally negative."""
    if isinstance(part, Product):
        return False
    match scalar_op(part):
        case Sqrt():
            return is_distance(part.owner.inputs[0])
        case Abs():
            return _is_difference(part.owner.inputs[0])
    return False


def _is_difference(variable: Any) -> bool:
    """Whether a matrix is a column minus the row of the same vector."""
    terms = terms_of(variable)
    if len(terms) != 2 or any(len(term.parts) != 1 for term in terms):
        return False
    first, second = terms
    if first.coefficient != -second.coefficient or not same_powers(first, second):
        return False
    if column_of(first.parts[0]) is None:
        first, second = second, first
    column, row = column_of(first.parts[0]), row_of(second.parts[0])
    return column is not None and row is not None and same(column, row)


def _is_conditionally_positive(terms: list[Term]) -> bool:
    """Whether ``c' A c >= 0`` for the sum ``A``, and each ``c`` whose elements sum to 0."""
    left = _without_lines(terms)
    return left is not None and all(_is_conditionally_positive_term(term) for term in left)


def _is_conditionally_positive_term(term: Term) -> bool:
    if not term.parts:
        # The same number in each element.
        return math.isfinite(term.coefficient)
    if len(term.parts) == 1 and is_gram(term.parts[0]):
        return is_nonnegative(term, term.coefficient)
    return _is_part_of_distance(term._replace(coefficient=-term.coefficient))


def _without_lines(terms: list[Term]) -> list[Term] | None:
    """Remove pairs of a column and the row of the same vector; None if one is unpaired."""
    columns, rows, others = _sorted(terms)
    for column in columns:
        at = _row_for(column, rows)
        if at is None:
            return None
        del rows[at]
    return None if rows else others


def _without_quadratic_form(terms: list[Term]) -> list[Term] | None:
    """Remove ``s_i + s_j - 2 x_i' x_j``, with ``s`` the squares of the rows of ``X``."""
    columns, rows, others = _sorted(terms)
    for column in columns:
        row, gram = _row_for(column, rows), _gram_for(column, others)
        if row is None or gram is None:
            return None
        del rows[row], others[gram]
    return None if rows else others


def _gram_for(column: Term, terms: list[Term]) -> int | None:
    """Return the place of the products of rows whose squares are a column; else None."""
    for squares in _row_squares(column):
        for i, term in enumerate(terms):
            if (
                len(term.parts) == 1
                and is_gram(term.parts[0])
                and not term.parts[0].operands[0].is_turned
                and same_part(term.parts[0].operands[0].matrix, squares.parts[0])
                and term.coefficient == -2 * squares.coefficient
                and same_powers(term, squares)
                and is_nonnegative(squares, squares.coefficient)
            ):
                return i
    return None


def _sorted(terms: list[Term]) -> tuple[list[Term], list[Term], list[Term]]:
    columns, rows, others = [], [], []
    for term in terms:
        alone = len(term.parts) == 1
        if alone and column_of(term.parts[0]) is not None:
            columns.append(term)
        elif alone and row_of(term.parts[0]) is not None:
            rows.append(term)
        else:
            others.append(term)
    return columns, rows, others


def _row_for(column: Term, rows: list[Term]) -> int | None:
    vector = column_of(column.parts[0])
    found = (
        i
        for i, row in enumerate(rows)
        if same(row_of(row.parts[0]), vector)
        and row.coefficient == column.coefficient
        and same_powers(row, column)
    )
    return next(found, None)


def _row_squares(column: Term) -> list[Term]:
    """Return scaled matrices whose row sums of squares are a column."""
    vector = column_of(column.parts[0])
    if vector.owner is None or not isinstance(vector.owner.op, Sum):
        return []
    if vector.type.dtype != "float64":
        return []
    squared = vector.owner.inputs[0]
    if vector.owner.op.axis not in ((1,), (-1,)) or squared.type.ndim != 2:
        return []
    outside = column._replace(parts=())
    found = []
    if isinstance(scalar_op(squared), Sqr | Pow):
        base, *exponent = squared.owner.inputs
        if all(number_of(one) == 2 for one in exponent):
            found.append(outside._replace(parts=(base,)))
    [squares, *others] = terms_of(squared)
    if not others and len(squares.parts) == 2 and same_part(*squares.parts):
        found.append(multiplied(outside, squares._replace(parts=squares.parts[:1])))
    return found


def _line_of(part: Any, broadcastable: tuple[bool, bool]) -> Any:
    if isinstance(part, Product) or part.type.broadcastable != broadcastable:
        return None
    if part.owner is None or not isinstance(part.owner.op, DimShuffle | Reshape):
        return None
    inner = part.owner.inputs[0]
    return inner if inner.type.ndim == 1 and not inner.type.broadcastable[0] else None


def _is_cut_at_zero(values: list[Any]) -> bool:
    """Whether one of two values is a number that is at most 0, and the other a distance."""
    for one, other in (values, values[::-1]):
        limit = number_of(other)
        if limit is not None and limit <= 0:
            return is_distance(one)
    return False


def _is_positive_distance(variable: Any) -> bool:
    terms = terms_of(variable)
    constant = sum(term.coefficient for term in terms if not (term.parts or term.powers))
    return constant > 0 and is_distance(variable)


def _is_not_positive(exponent: Any) -> bool:
    if any(not short for short in exponent.type.broadcastable):
        return False
    [term, *others] = terms_of(exponent)
    return not others and not term.parts and is_nonnegative(term, -term.coefficient)


def _times(term: Term, number: float) -> Term:
    return term._replace(coefficient=term.coefficient * number)


def _is_same_term(first: Term, second: Term) -> bool:
    return (
        math.isclose(first.coefficient, second.coefficient, rel_tol=_TOLERANCE)
        and same_powers(first, second)
        and len(first.parts) == len(second.parts)
        and all(same_part(a, b) for a, b in zip(first.parts, second.parts, strict=True))
    )
