"""Sparse matrices as arguments and results of machine code: their parts are SciPy's arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pytensor_fuse._imports import after_import
from pytensor_fuse._native.linking.parts import PASSING, Passing

if TYPE_CHECKING:
    from collections.abc import Sequence

Array = np.ndarray[Any, Any]
_MOST: Final = (1 << 31) - 1


def _apart(matrix: Any) -> Sequence[Array]:
    data, indices, indptr = matrix.data, matrix.indices, matrix.indptr
    if len(indptr) and 0 <= indptr[-1] < min(len(data), len(indices)):
        # SciPy's matrices may have spare capacity behind their entries.
        data, indices = data[: indptr[-1]], indices[: indptr[-1]]
    return [data, _in_32_bits(indices), _in_32_bits(indptr), np.array(matrix.shape, np.int64)]


def _in_32_bits(indices: Array) -> Array:
    """Return indices in the dtype of machine code.

    Raises
    ------
    OverflowError
        If an index does not fit into it.
    """
    if indices.dtype == np.int32:
        return indices
    if indices.size and not -_MOST <= indices.min() <= indices.max() <= _MOST:
        raise OverflowError("the indices of a sparse matrix are beyond 32 bits")
    return indices.astype(np.int32)


def _register() -> None:
    from pytensor.sparse.type import SparseTensorType
    from scipy.sparse import csc_matrix, csr_matrix

    classes = {"csr": csr_matrix, "csc": csc_matrix}

    def together(kind: Any, parts: Sequence[Array]) -> Any:
        data, indices, indptr, shape = parts
        rows, columns = shape.tolist()
        return classes[kind.format]((data, indices, indptr), shape=(rows, columns), copy=False)

    PASSING[SparseTensorType] = Passing(_apart, together, lambda matrix: matrix.copy())


after_import("pytensor.sparse.type", _register)
