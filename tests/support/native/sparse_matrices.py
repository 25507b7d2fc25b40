"""Sparse matrices for the tests: any that SciPy accepts, and as variables built from parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
import scipy.sparse
from hypothesis import strategies as st
from pytensor.sparse.basic import CSM, csm_properties

if TYPE_CHECKING:
    from pytensor.graph.basic import Variable

FORMATS = ("csr", "csc")
CLASSES = {"csr": scipy.sparse.csr_matrix, "csc": scipy.sparse.csc_matrix}
DTYPES = ("float64", "float32", "int64", "int8")
LENGTHS = st.integers(0, 4)
# Sums and products of a few of them are exact, and some cancel.
NUMBERS = st.sampled_from([0, 1, 2, -1, -2, 3])


@st.composite
def matrices(
    draw: Any,
    *,
    storage: str,
    dtype: str = "float64",
    shape: tuple[int | None, int | None] = (None, None),
    is_canonical: bool | None = None,
) -> Any:
    """Draw a matrix with entries in any order, including duplicates and zeros.

    Parameters
    ----------
    draw
        Draws.
    storage, dtype
        The storage format and the dtype of the matrix.
    shape
        Its shape; None for a length that is drawn.
    is_canonical
        Whether the entries are sorted without duplicates; drawn if None.
    """
    rows, columns = (draw(LENGTHS) if one is None else one for one in shape)
    n_major, n_minor = (rows, columns) if storage == "csr" else (columns, rows)
    canonical = draw(st.booleans()) if is_canonical is None else is_canonical
    places = st.lists(st.integers(0, n_minor - 1), max_size=4) if n_minor else st.just([])
    indices = [draw(places) for _ in range(n_major)]
    if canonical:
        indices = [sorted(set(row)) for row in indices]
    indptr = np.cumsum([0, *[len(row) for row in indices]])
    values = draw(st.lists(NUMBERS, min_size=int(indptr[-1]), max_size=int(indptr[-1])))
    return of_parts(
        storage,
        np.array(values, dtype),
        np.array([one for row in indices for one in row], np.int32),
        indptr,
        (rows, columns),
    )


def of_parts(storage: str, data: Any, indices: Any, indptr: Any, shape: tuple[int, int]) -> Any:
    """Return a matrix with these parts, unchanged."""
    parts = data, np.asarray(indices, np.int32), np.asarray(indptr, np.int32)
    return CLASSES[storage](parts, shape=shape)


def random_matrix(
    storage: str, shape: tuple[int, int], *, density: float = 0.5, dtype: str = "float64"
) -> Any:
    """Return a matrix with entries at random places, in order."""
    made = scipy.sparse.random(*shape, density, random_state=np.random.default_rng(1))
    return made.asformat(storage).astype(dtype)


def variable(storage: str, dtype: str = "float64") -> tuple[list[Variable], Any]:
    """Return variables for the parts of a matrix, and the matrix that is built from them."""
    parts = [pt.vector(dtype=one) for one in (dtype, "int32", "int32", "int32")]
    return parts, CSM(storage)(*parts)


def parts_of(matrix: Any) -> list[np.ndarray]:
    """Return the arrays that a matrix consists of."""
    return [matrix.data, matrix.indices, matrix.indptr, np.array(matrix.shape, np.int32)]


def results_of(matrix: Any) -> list[Variable]:
    """Return the parts of a sparse variable as outputs."""
    return list(csm_properties(matrix))
