"""Sparse matrices, whose types are kinds of `TensorType`, and what they store."""

from __future__ import annotations

from typing import Any

import numpy as np
from pytensor.tensor.type import TensorType


def is_sparse(type_: Any) -> bool:
    """Whether a type is of sparse matrices.

    The class itself is not asked for, as few graphs need its module and SciPy's.
    """
    return isinstance(type_, TensorType) and hasattr(type_, "format")


def sparse_parts(data: Any) -> list[np.ndarray]:
    """Return the arrays of a sparse matrix; none of anything else."""
    parts = [getattr(data, name, None) for name in ("data", "indices", "indptr")]
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    return arrays if len(arrays) == len(parts) else []
