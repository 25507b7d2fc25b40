"""Estimates of the floating-point operations of work on matrices.

For iterative methods, see Golub and Van Loan, Matrix Computations, 4th edition, chapters 7 and 8.
Terms of lower powers are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.tensor.linalg.decomposition.cholesky import Cholesky
from pytensor.tensor.linalg.decomposition.eigen import Eig, Eigh, Eigvalsh
from pytensor.tensor.linalg.decomposition.lu import LU, LUFactor
from pytensor.tensor.linalg.decomposition.schur import Schur
from pytensor.tensor.linalg.inverse import MatrixInverse
from pytensor.tensor.linalg.solvers.general import Solve
from pytensor.tensor.linalg.summary import Det, SLogDet

from pytensor_fuse._audit.sections.matrices.kinds import PRODUCTS, TRIANGULAR, core_of
from pytensor_fuse._linalg.costs import SOLVE_PASSES, Cost, Length, product_cost, solve_cost, term
from pytensor_fuse._linalg.ops.cholesky_inverse import CholeskyInverse
from pytensor_fuse._linalg.ops.lu_inverse import LUInverse

if TYPE_CHECKING:
    from pytensor.graph.op import Op

    from pytensor_fuse._audit.sections.matrices.record import MatrixWork

# Costs count in units of 1 / PARTS of an operation: a Cholesky factorization takes n^3 / 3.
PARTS = 3

# The coefficients of the cube of the length, in these units.
_CUBIC: dict[type[Op], int] = {
    Cholesky: 1,
    CholeskyInverse: 2,
    **dict.fromkeys((LU, LUFactor, Det, SLogDet), 2),
    LUInverse: 4,
    MatrixInverse: 6,
    Eigvalsh: 4,
    Eigh: 27,
    **dict.fromkeys((Eig, Schur), 75),
}

# The coefficients of the factorization in a solve, by the assumed structure.
_SOLVE = {"pos": 1, "sym": 1, "her": 1}
_GENERAL = 2


def operations(work: MatrixWork, *, square: int | None = None) -> Cost | None:
    """Return the number of a node's operations in a call, in `PARTS`; None if not counted.

    Parameters
    ----------
    work
        The work of the node.
    square
        For a product, the index of the operand that is square, if known.
    """
    core = core_of(work.node.op)
    class_ = type(core)
    times = tuple(
        letter if n is None else n for n, letter in ((work.batch, "b"), (work.runs, "t")) if n != 1
    )
    if class_ in PRODUCTS:
        return _times(product_cost(*_lengths(work, square)), PARTS, times)
    n = length_of(work)
    if class_ in _CUBIC:
        is_half = class_ is LUInverse and core.symmetric
        return _times(term(1, n, n, n), _CUBIC[class_] // (2 if is_half else 1), times)
    if class_ is Solve or class_ in TRIANGULAR:
        columns = "k" if work.lengths[1] is None else work.lengths[1]
        passes = _times(solve_cost(SOLVE_PASSES[class_.__name__], n, columns), PARTS, times)
        if class_ is not Solve:
            return passes
        factorization = _SOLVE.get(core.assume_a, _GENERAL)
        return passes + _times(term(1, n, n, n), factorization, times)
    return None


def length_of(work: MatrixWork) -> Length:
    """Return the number of rows of the square matrix of some work; a letter if unknown."""
    is_solve = work.op in SOLVE_PASSES
    known = work.lengths[:1] if is_solve else work.lengths
    return next((n for n in known if n is not None), "n")


def _lengths(work: MatrixWork, square: int | None) -> tuple[Length, Length, Length]:
    """Return the lengths of a product; equal unknown lengths have the same letter."""
    m, k, n = work.lengths
    if square is not None:
        both = next((one for one in work.lengths[square : square + 2] if one is not None), "n")
        other = work.lengths[2 - 2 * square]
        rest = "k" if other is None else other
        return (both, both, rest) if square == 0 else (rest, both, both)
    return "m" if m is None else m, "k" if k is None else k, "n" if n is None else n


def _times(cost: Cost, factor: int, lengths: tuple[Length, ...]) -> Cost:
    return cost.times(term(factor, *lengths))
