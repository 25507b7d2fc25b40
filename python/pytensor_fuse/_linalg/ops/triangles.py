"""Filling one triangle of a square array, in place, from the other.

The array is processed in blocks: a transposed copy of whole rows touches as many cache lines as it
copies numbers, and the triangles of the full array would be temporaries of its size.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_BLOCK = 64


def mirror_triangle(matrix: Any, lower: bool) -> None:
    """Copy the lower triangle of a square array to the upper one, or the upper to the lower."""
    source = matrix if lower else matrix.T
    n = len(source)
    for start in range(0, n, _BLOCK):
        stop = min(start + _BLOCK, n)
        block = source[start:stop, start:stop]
        block[...] = np.tril(block) + np.tril(block, -1).T
        source[start:stop, stop:] = source[stop:, start:stop].T
