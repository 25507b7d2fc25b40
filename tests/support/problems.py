"""Small fusion problems as integer arrays."""

from __future__ import annotations

from typing import Any

import numpy as np


def rows(*lists: list[int]) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.cumsum([0, *map(len, lists)], dtype=np.uint32)
    return offsets, np.array([i for row in lists for i in row], dtype=np.uint32)


def problem() -> dict[str, Any]:
    """Return a problem: node 2 reads a sum of node 0's result; node 3 may join either of them.

    It shares variable 0 with node 0, and variables 1 and 2 with node 2.
    """
    input_offsets, inputs = rows([0], [3], [4, 1, 2], [0, 1, 2])
    output_offsets, outputs = rows([3], [4], [5], [6])
    return {
        "n_variables": 7,
        "input_offsets": input_offsets,
        "inputs": inputs,
        "output_offsets": output_offsets,
        "outputs": outputs,
        "groups": np.array([0, -1, 0, 0], dtype=np.int32),
        "links": np.array([0, 0, 0, 0, -1, 0, 0], dtype=np.int32),
        "constants": np.zeros(7, dtype=bool),
        "results": np.arange(7) > 4,
        "max_operands": 1024,
    }
