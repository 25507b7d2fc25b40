"""Sparse matrices, whose types are subclasses of `TensorType`."""

from __future__ import annotations

from typing import Any

import numpy as np
from pytensor.tensor.type import TensorType


def is_sparse(type_: Any) -> bool:
    """Return whether a type is sparse.

    The class itself is not imported, since few graphs need its module and SciPy's.
    """
    return isinstance(type_, TensorType) and hasattr(type_, "format")


def sparse_parts(data: Any) -> list[np.ndarray]:
    """Return the arrays of a sparse matrix, or an empty list for other data."""
    parts = [getattr(data, name, None) for name in ("data", "indices", "indptr")]
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    return arrays if len(arrays) == len(parts) else []
