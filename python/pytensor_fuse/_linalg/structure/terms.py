"""Matrices as sums of terms: a number, powers of scalars, and elementwise factors.

In real arithmetic, ``-0.5 * (a[:, None] + a[None, :] - 2 * X @ X.T) / s**2`` is three terms, each
with ``s`` to the power of -2.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pytensor.scalar.basic import Add, Identity, Mul, Neg, Pow, Reciprocal, Sqr, Sub, TrueDiv
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Dot
from pytensor.tensor.shape import Reshape, SpecifyShape

from pytensor_fuse._linalg.structure.matrices import (
    are_paired,
    core_of,
    same,
    scalar_op,
    transpose_of,
)
from pytensor_fuse._linalg.structure.signs import number_of

# The depth to which expressions are expanded, and the largest number of terms.
_DEPTH = 16
_MOST = 64

# Integer powers of scalars that are expanded.
_EXPONENTS = range(-8, 9)


class Power(NamedTuple):
    """An integer power of a scalar, whose axes all have length 1."""

    base: Any
    exponent: int


class Operand(NamedTuple):
    """A matrix, or its transpose, in a product of matrices."""

    matrix: Any
    is_turned: bool

    def __str__(self) -> str:
        return f"{self.matrix}.T" if self.is_turned else str(self.matrix)


class Product(NamedTuple):
    """A product of matrices."""

    operands: tuple[Operand, ...]

    def __str__(self) -> str:
        return f"({' @ '.join(map(str, self.operands))})"


class Term(NamedTuple):
    """A summand.

    Attributes
    ----------
    coefficient
        A number.
    powers
        Powers of scalar variables, each base once.
    parts
        Elementwise factors: variables, and products of matrices. Empty for a scalar.
    """

    coefficient: float
    powers: tuple[Power, ...]
    parts: tuple[Any, ...]

    def __repr__(self) -> str:
        powers = (f"{base}^{exponent}" for base, exponent in self.powers)
        return " * ".join((f"{self.coefficient:g}", *powers, *map(str, self.parts)))


_ONE = Term(1.0, (), ())

# Memoized results by variable and depth: a variable may occur many times.
_Known = dict[tuple[Any, int], list[Term]]


def terms_of(variable: Any, depth: int = _DEPTH) -> list[Term]:
    """Return the terms whose sum is a variable of real numbers."""
    found = _terms(variable, depth, {})
    return found if len(found) <= _MOST else [Term(1.0, (), (variable,))]


def multiplied(first: Term, second: Term) -> Term:
    """Return the elementwise product of two terms."""
    powers = list(first.powers)
    for base, exponent in second.powers:
        at = next((i for i, one in enumerate(powers) if same(one.base, base)), None)
        if at is None:
            powers.append(Power(base, exponent))
        elif powers[at].exponent + exponent:
            powers[at] = Power(base, powers[at].exponent + exponent)
        else:
            del powers[at]
    coefficient = first.coefficient * second.coefficient
    return Term(coefficient, tuple(powers), first.parts + second.parts)


def same_powers(first: Term, second: Term) -> bool:
    """Whether the powers of scalars in two terms are the same."""
    return are_paired(
        first.powers, second.powers, lambda a, b: a.exponent == b.exponent and same(b.base, a.base)
    )


def same_part(first: Any, second: Any) -> bool:
    """Whether two parts of terms are the same."""
    if isinstance(first, Product) != isinstance(second, Product):
        return False
    if not isinstance(first, Product):
        return same(first, second)
    return len(first.operands) == len(second.operands) and all(
        a.is_turned == b.is_turned and same(a.matrix, b.matrix)
        for a, b in zip(first.operands, second.operands, strict=True)
    )


def _terms(variable: Any, depth: int, known: _Known) -> list[Term]:
    """Return the terms, of more than `_MOST` the first ones; such a sum is not expanded."""
    found = known.get((variable, depth))
    if found is None:
        found = known[variable, depth] = _terms_of_node(variable, depth, known)[: _MOST + 1]
    return found


def _terms_of_node(variable: Any, depth: int, known: _Known) -> list[Term]:
    number = number_of(variable)
    if number is not None:
        return [Term(number, (), ())]
    is_exact = _is_scalar(variable) or variable.type.dtype == "float64"
    if (
        variable.owner is None
        or depth <= 0
        or variable.type.numpy_dtype.kind != "f"
        or not is_exact
    ):
        # Integers overflow, and single precision rounds too much.
        return [_opaque(variable)]
    inputs = variable.owner.inputs
    if isinstance(core_of(variable.owner), Dot) and variable.type.ndim == 2:
        thin = inputs[0].type.ndim == 2 and inputs[0].type.shape[1] == 1 == inputs[1].type.shape[0]
        if thin and not _are_points_on_a_line(*inputs):
            # A column times a row.
            return _multiplied([_terms(one, depth - 1, known) for one in inputs], inputs)
        return [_product(variable, depth, known)]
    if _is_scalar(variable) and isinstance(variable.owner.op, DimShuffle | Reshape | SpecifyShape):
        return _terms(inputs[0], depth - 1, known) if _is_scalar(inputs[0]) else [_opaque(variable)]
    match scalar_op(variable):
        case Add():
            return [term for one in inputs for term in _terms(one, depth - 1, known)]
        case Sub():
            left, right = (_terms(one, depth - 1, known) for one in inputs)
            return left + _scaled(right, Term(-1.0, (), ()))
        case Neg():
            return _scaled(_terms(inputs[0], depth - 1, known), Term(-1.0, (), ()))
        case Identity():
            return _terms(inputs[0], depth - 1, known)
        case Mul():
            return _multiplied([_terms(one, depth - 1, known) for one in inputs], inputs)
        case TrueDiv():
            divisor = _inverted(_single(inputs[1], depth, known))
            if divisor is not None:
                return _scaled(_terms(inputs[0], depth - 1, known), divisor)
        case Reciprocal():
            divisor = _inverted(_single(inputs[0], depth, known))
            if divisor is not None:
                return [divisor]
        case Sqr():
            return [_power(variable, 2, depth, known)]
        case Pow():
            exponent = number_of(inputs[1])
            if exponent in (2, 3) or (_is_scalar(variable) and exponent in _EXPONENTS):
                return [_power(variable, int(exponent or 0), depth, known)]
    return [_opaque(variable)]


def _are_points_on_a_line(left: Any, right: Any) -> bool:
    """Whether a product of a column and a row is one of a matrix with one column."""
    right_is_turned = transpose_of(right) is not None
    return right_is_turned and not any(_is_made_of_vector(one) for one in (left, right))


def _is_made_of_vector(variable: Any) -> bool:
    """Whether a column or a row is made of vectors."""
    while variable.owner is not None:
        op = variable.owner.op
        if isinstance(op, DimShuffle | Reshape):
            [variable, *_] = variable.owner.inputs
        elif isinstance(op, Elemwise):
            long = [one for one in variable.owner.inputs if not _is_scalar(one)]
            if len(long) != 1:
                return False
            [variable] = long
        else:
            break
        if variable.type.ndim == 1:
            return True
    return bool(variable.type.ndim == 1)


def _is_scalar(variable: Any) -> bool:
    return all(variable.type.broadcastable)


def _opaque(variable: Any) -> Term:
    if not _is_scalar(variable):
        return Term(1.0, (), (variable,))
    return Term(1.0, (Power(variable, 1),), ())


def _scaled(terms: list[Term], factor: Term) -> list[Term]:
    return [multiplied(term, factor) for term in terms]


def _multiplied(factors: list[list[Term]], variables: list[Any]) -> list[Term]:
    """Multiply sums: at most one of them is expanded, the others become parts."""
    alone = [terms[0] for terms in factors if len(terms) == 1]
    sums = [
        (terms, variable)
        for terms, variable in zip(factors, variables, strict=True)
        if len(terms) > 1
    ]
    factor = _ONE
    for term in alone:
        factor = multiplied(factor, term)
    if len(sums) == 1 and not factor.parts:
        return _scaled(sums[0][0], factor)
    for _, variable in sums:
        factor = multiplied(factor, _opaque(variable))
    return [factor]


def _single(variable: Any, depth: int, known: _Known) -> Term:
    found = _terms(variable, depth - 1, known)
    return found[0] if len(found) == 1 else _opaque(variable)


def _inverted(term: Term) -> Term | None:
    """Return the reciprocal of a scalar term; None for others, and for 0."""
    if term.parts or not term.coefficient:
        return None
    powers = tuple(Power(base, -exponent) for base, exponent in term.powers)
    return Term(1 / term.coefficient, powers, ())


def _power(variable: Any, exponent: int, depth: int, known: _Known) -> Term:
    single: Term | None = _single(variable.owner.inputs[0], depth, known)
    if single is not None and exponent < 0:
        single = _inverted(single)
    if single is None:
        return _opaque(variable)
    result = _ONE
    for _ in range(abs(exponent)):
        result = multiplied(result, single)
    return result


def _product(variable: Any, depth: int, known: _Known) -> Term:
    """Factor scalars out of a product of matrices."""
    factor = _ONE
    operands: tuple[Operand, ...] = ()
    for one in variable.owner.inputs:
        number, found = _operands(one, depth - 1, known)
        factor = multiplied(factor, number)
        operands += found
    return factor._replace(parts=(Product(operands),))


def _operands(matrix: Any, depth: int, known: _Known) -> tuple[Term, tuple[Operand, ...]]:
    """Return a matrix as a scalar and a product of one matrix or more."""
    inner = transpose_of(matrix)
    if inner is not None and depth > 0:
        number, found = _operands(inner, depth - 1, known)
        return number, tuple(Operand(one, not turned) for one, turned in reversed(found))
    term = _single(matrix, depth, known)
    if len(term.parts) != 1 or depth <= 0:
        return _ONE, (Operand(matrix, False),)
    [part] = term.parts
    number = term._replace(parts=())
    if isinstance(part, Product):
        return number, part.operands
    if part is matrix:
        return _ONE, (Operand(matrix, False),)
    more, found = _operands(part, depth - 1, known)
    return multiplied(number, more), found
