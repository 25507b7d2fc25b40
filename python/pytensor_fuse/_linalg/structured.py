"""Declarations of structure that the form of a matrix does not show: sizes, zeros, properties.

Sizes are declared with PyTensor's `specify_shape`, properties with its `assume`. Zeros are declared
by form: the result is made of the parts that may be nonzero, as if the user had written it so. So
the result does not depend on whether the rules are on, and there is no op to remove.
"""

from __future__ import annotations

import operator
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pytensor.tensor as pt
from pytensor.raise_op import Assert

from pytensor_fuse._pytensor.rewriting.assumptions import said

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.tensor.variable import TensorVariable

# The largest difference from the transpose, relative to the norm, of a matrix declared symmetric.
_TOLERANCES = {"float32": 1e-4, "float64": 1e-10}


def structured(
    matrix: Any,
    *,
    shape: Sequence[int | None] | None = None,
    block_diagonal: Sequence[int] | None = None,
    banded: tuple[int, int] | None = None,
    tridiagonal: bool = False,
    toeplitz: bool = False,
    check: bool = True,
    **assumptions: bool,
) -> TensorVariable[Any, Any]:
    """Return a matrix with a declared structure.

    Rules of the feature `linalg`, and rewriters of PyTensor, use the declaration. The result and
    its gradient do not depend on it.

    Parameters
    ----------
    matrix : TensorVariable or array_like
        One matrix of numbers.
    shape : sequence of int or None, optional
        The numbers of rows and columns, None for an unknown one. It also declares a rank: that of
        ``U @ U.T`` is at most the number of columns of ``U``.
    block_diagonal : sequence of int, optional
        The sizes of the square blocks on its diagonal, outside of which it is zero.
    banded : tuple of int, optional
        The numbers of diagonals below and above the main one that may be nonzero. A matrix with
        fewer rows than the larger of the two must be of known size.
    tridiagonal : bool, optional
        The same as a `banded` of ``(1, 1)``.
    toeplitz : bool, optional
        Whether it is a symmetric Toeplitz matrix: an element depends on nothing but its distance
        from the diagonal, as in a covariance of points on a regular grid.
    check : bool, optional
        Whether the function checks, in one pass over the matrix, declared zeros, and symmetric or
        Toeplitz structure. Without the check, elements declared zero are not read and count as
        zero, only the first row of a matrix declared Toeplitz is read, and the results for a
        matrix that is wrongly declared symmetric are undefined.
    assumptions : bool
        Keywords of `pytensor.assumptions.assume`, such as ``symmetric``, ``positive_definite`` or
        ``lower_triangular``. The results of a wrong assumption that `check` does not find are
        undefined. A matrix that is not positive definite gives NaN where it is factorized.

    Returns
    -------
    TensorVariable
        The same matrix.

    Raises
    ------
    TypeError
        If a size or a number of diagonals is no whole number, or a flag is neither True nor
        False.
    ValueError
        If `matrix` does not have two dimensions, or more than one of `block_diagonal`, `banded`,
        `tridiagonal` and `toeplitz` is given, or a size or a number of diagonals is negative, or
        PyTensor does not know an assumption.

    Notes
    -----
    The function raises an AssertionError if a shape or a size differs from the declared one, or if
    `check` finds a difference.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor_fuse.linalg import structured
    >>> U = structured(pt.matrix("U"), shape=(2000, 20))
    >>> U.type.shape
    (2000, 20)
    >>> K = structured(pt.matrix("K"), block_diagonal=(30, 40), positive_definite=True)
    >>> K.type.shape
    (70, 70)
    """
    flags = {"tridiagonal": tridiagonal, "toeplitz": toeplitz, "check": check, **assumptions}
    for name, holds in flags.items():
        if not isinstance(holds, bool):
            raise TypeError(f"{name} must be True or False, not {holds!r}")
    result: Any = pt.as_tensor_variable(matrix)
    if result.type.ndim != 2:
        raise ValueError(f"structured takes a matrix, not {result.type}")
    if tridiagonal and banded is None:
        banded = (1, 1)
    elif tridiagonal:
        raise ValueError("banded and tridiagonal both say where the matrix is zero")
    if banded is not None and block_diagonal is not None:
        raise ValueError("block_diagonal and banded both say where the matrix is zero")
    if toeplitz and not (banded is None and block_diagonal is None):
        raise ValueError("a Toeplitz matrix is made of its first row, not of diagonals or blocks")
    if shape is not None:
        lengths = _several(shape, "shape", "the numbers of rows and columns")
        if any(length is not None and _whole(length, "a length") < 0 for length in lengths):
            raise ValueError(f"lengths must not be negative, unlike {lengths}")
        result = pt.specify_shape(result, lengths)
    # A check of the assembled matrix would hide its form.
    checked = {name for name, holds in assumptions.items() if holds and check}
    if block_diagonal is not None:
        sizes = _several(block_diagonal, "block_diagonal", "the sizes of the blocks")
        result = _of_blocks(result, sizes, check, checked)
    elif banded is not None:
        band = _several(banded, "banded", "two numbers of diagonals, below and above")
        if len(band) != 2:
            raise ValueError(f"banded is two numbers of diagonals, below and above, not {band}")
        result = _of_diagonals(result, (band[0], band[1]), check, checked)
    else:
        result = _checked(result, checked)
    if toeplitz:
        result = _of_first_row(result, check)
    known: TensorVariable[Any, Any] = said(result, assumptions)
    return known


def _several(given: Any, name: str, what: str) -> tuple[Any, ...]:
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise TypeError(f"{name} is {what}, not {given!r}")
    return tuple(given)


def _whole(given: Any, what: str) -> int:
    try:
        return operator.index(given)
    except TypeError:
        raise TypeError(f"{what} is a whole number, not {given!r}") from None


def _of_blocks(matrix: Any, sizes: tuple[int, ...], check: bool, checked: set[str]) -> Any:
    if not sizes or any(_whole(size, "the size of a block") < 0 for size in sizes):
        raise ValueError(
            f"sizes of blocks must not be negative, and there must be one at least; not {sizes}"
        )
    matrix = pt.specify_shape(matrix, (sum(sizes), sum(sizes)))
    if check:
        matrix = _zero_but_for(matrix, _blocks(matrix, sizes), f"block-diagonal, blocks {sizes}")
    return pt.linalg.block_diag(*_blocks(_checked(matrix, checked), sizes))


def _blocks(matrix: Any, sizes: tuple[int, ...]) -> list[Any]:
    ranges = [slice(end - size, end) for size, end in zip(sizes, accumulate(sizes), strict=True)]
    return [
        pt.specify_shape(matrix[one, one], (size, size))
        for one, size in zip(ranges, sizes, strict=True)
    ]


def _of_diagonals(matrix: Any, band: tuple[int, int], check: bool, checked: set[str]) -> Any:
    if any(_whole(number, "a number of diagonals") < 0 for number in band):
        raise ValueError(f"the numbers of diagonals must not be negative, unlike {band}")
    rows = matrix.shape[0]
    matrix, known = _as_square(matrix, "banded")
    if known is None:
        # Diagonals outside a smaller matrix would make it larger.
        fits = pt.ge(rows, max(band))
        matrix = Assert(f"a matrix of diagonals {band} has at least {max(band)} rows")(matrix, fits)
    # Nearest to the diagonal first, which is always there.
    below, above = band
    offsets = sorted(range(-below, above + 1), key=lambda at: (abs(at), at))
    if known is not None:
        offsets = [at for at in offsets if abs(at) < known or not at]
    if check:
        diagonals = [pt.diagonal(matrix, offset=at) for at in offsets]
        matrix = _zero_but_for(matrix, diagonals, f"banded, diagonals {band}")
    matrix = _checked(matrix, checked)
    parts = [pt.diag(pt.diagonal(matrix, offset=at), k=at) for at in offsets]
    return parts[0] if len(parts) == 1 else pt.add(*parts)


def _as_square(matrix: Any, what: str) -> tuple[Any, int | None]:
    """Return a matrix, checked to be square, and the number of its rows if that is known."""
    rows, columns = matrix.type.shape
    known = rows if columns is None else columns
    if known is not None:
        return pt.specify_shape(matrix, (known, known)), known
    is_square = pt.eq(matrix.shape[0], matrix.shape[1])
    return Assert(f"a {what} matrix is square")(matrix, is_square), None


def _of_first_row(matrix: Any, check: bool) -> Any:
    matrix, known = _as_square(matrix, "symmetric Toeplitz")
    places = pt.arange(matrix.shape[0] if known is None else known)
    distances = pt.abs(places[:, None] - places[None, :])
    if check:
        differs = (pt.abs(matrix - matrix[0][distances]) > _allowed(matrix)).any()
        matrix = _asserted(matrix, pt.invert(differs), "symmetric and Toeplitz")
    return matrix[0][distances]


def _allowed(matrix: Any) -> Any:
    """Return the allowed difference of elements declared equal; 0 for integers."""
    tolerance = _TOLERANCES.get(matrix.type.dtype)
    # A NaN anywhere makes it NaN, and the check finds no difference.
    return 0 if tolerance is None else tolerance * pt.sqrt(pt.sqr(matrix).sum())


def _zero_but_for(matrix: Any, parts: list[Any], what: str) -> Any:
    """Return the matrix, checked to be zero outside some parts."""
    inside = pt.add(pt.constant(0, dtype="int64"), *(pt.neq(one, 0).sum() for one in parts))
    return _asserted(matrix, pt.eq(pt.neq(matrix, 0).sum(), inside), what)


def _checked(matrix: Any, said: set[str]) -> Any:
    """Return the matrix, checked for the assumptions that one pass can check."""
    if "diagonal" in said:
        matrix = _zero_but_for(matrix, [pt.diagonal(matrix)], "diagonal")
    if "lower_triangular" in said:
        matrix = _zero_but_for(matrix, [pt.tril(matrix)], "lower triangular")
    if "upper_triangular" in said:
        matrix = _zero_but_for(matrix, [pt.triu(matrix)], "upper triangular")
    if "symmetric" in said and matrix.type.dtype in _TOLERANCES:
        differs = (pt.abs(matrix - matrix.T) > _allowed(matrix)).any()
        matrix = _asserted(matrix, pt.invert(differs), "symmetric")
    return matrix


def _asserted(matrix: Any, condition: Any, what: str) -> Any:
    return Assert(f"structured: the matrix is not {what}")(matrix, condition)
