"""What linear algebra costs, in floating-point operations, and which of two ways is cheaper.

A cost is a sum of products of lengths. A length that is not known when a graph is compiled stands
as a letter, at least 2: work on matrices with an axis of length 1 is no cubic work, and costs next
to nothing either way. Of two costs one is at most the other only if it is so whatever the letters.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product as all_of
from math import prod
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pytensor.graph.basic import Variable

# The least that a letter stands for.
_LEAST: Final = 2

# A length: known, or a letter.
Length = int | str


class Cost:
    """A sum of products of lengths, each with a positive whole factor.

    Parameters
    ----------
    terms
        Factors, by the sorted letters of the product.
    """

    def __init__(self, terms: Counter[tuple[str, ...]] | None = None) -> None:
        self._terms: Counter[tuple[str, ...]] = Counter() if terms is None else terms

    def __add__(self, other: Cost) -> Cost:
        return Cost(self._terms + other._terms)

    def times(self, other: Cost) -> Cost:
        """Return the cost of doing it as often as another says."""
        terms: Counter[tuple[str, ...]] = Counter()
        for mine, n in self._terms.items():
            for theirs, m in other._terms.items():
                terms[tuple(sorted(mine + theirs))] += n * m
        return Cost(terms)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cost) and self._terms == other._terms

    def __hash__(self) -> int:
        return hash(frozenset(self._terms.items()))

    def __repr__(self) -> str:
        parts = (" ".join((str(n), *letters)) for letters, n in sorted(self._terms.items()))
        return f"Cost({' + '.join(parts)})"

    def in_words(self, *, parts: int = 1) -> str:
        """Return the cost as a formula, highest powers first.

        Parameters
        ----------
        parts
            Into how many parts of an operation it is counted.
        """
        shown = []
        for letters, n in sorted(self._terms.items(), key=_steepest_first):
            powers = (f"{at}^{m}" if m > 1 else at for at, m in Counter(letters).items())
            number = Fraction(n, parts)
            factor = f"{round(number):,}" if not letters or number.denominator == 1 else str(number)
            shown.append(" ".join((*((factor,) if factor != "1" or not letters else ()), *powers)))
        return " + ".join(shown) or "0"

    def at(self, **lengths: int) -> int:
        """Return the cost for given lengths of its letters."""
        return sum(n * prod(lengths[at] for at in letters) for letters, n in self._terms.items())

    def is_at_most(self, other: Cost) -> bool:
        """Whether it is at most ``other`` whatever the letters, from 2 up.

        Notes
        -----
        Sufficient, not necessary: written in letters from 0 up, no term of the difference may be
        negative.
        """
        difference = other._from_zero()
        difference.subtract(self._from_zero())
        return all(n >= 0 for n in difference.values())

    def _from_zero(self) -> Counter[tuple[str, ...]]:
        """Return the same sum with each letter replaced by a letter plus the least of it."""
        terms: Counter[tuple[str, ...]] = Counter()
        for letters, n in self._terms.items():
            for kept in all_of((True, False), repeat=len(letters)):
                left = tuple(at for at, keep in zip(letters, kept, strict=True) if keep)
                terms[left] += n * _LEAST ** (len(letters) - len(left))
        return terms


def _steepest_first(item: tuple[tuple[str, ...], int]) -> tuple[object, ...]:
    letters, _ = item
    return -len(letters), sorted(-n for n in Counter(letters).values()), letters


def term(factor: int, *lengths: Length) -> Cost:
    """Return a cost that is one product."""
    known = [length for length in lengths if isinstance(length, int)]
    letters = tuple(sorted(length for length in lengths if isinstance(length, str)))
    return Cost(Counter({letters: factor * prod(known)}))


def length(variable: Variable[Any, Any], axis: int, letter: str) -> Length:
    """Return the length of an axis, or ``letter`` if it is not known."""
    known: int | None = variable.type.shape[axis]
    return letter if known is None else known


def product_cost(m: Length, k: Length, n: Length) -> Cost:
    """Return the cost of multiplying an m by k matrix by a k by n matrix."""
    return term(2, m, k, n)


def solve_cost(passes: int, n: Length, columns: Length) -> Cost:
    """Return the cost of ``passes`` triangular solves of n equations, factorization apart."""
    return term(passes, n, n, columns)


# Triangular solves that a solve takes, by the class of its op.
SOLVE_PASSES: Final = {"SolveTriangular": 1, "CholeskySolve": 2, "Solve": 2}
