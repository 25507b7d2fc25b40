"""Matrices of known structure, and modes that leave a graph of linear algebra as it is."""

import numpy as np
from pytensor.compile.mode import Mode

from support.effort import IS_DEEP

BACKENDS = ["NUMBA", "CVM", "py"]

# Backends with whether an op may overwrite, and types: Numba compiles each layout separately.
KINDS = [
    (backend, overwrite, dtype)
    for backend in BACKENDS
    for overwrite in (False, True)
    for dtype in ("float64", "float32")
    if backend != "NUMBA" or IS_DEEP or overwrite == (dtype == "float32")
]


def as_it_is(backend):
    """Return a mode that changes nothing in the graph."""
    return Mode(linker={"NUMBA": "numba", "CVM": "cvm", "py": "py"}[backend], optimizer=None)


def positive_definite(n, condition=10.0, *, seed=0, dtype="float64"):
    """Return a symmetric matrix whose eigenvalues range from ``1 / condition`` to 1."""
    vectors, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))
    matrix = (vectors * np.geomspace(1 / condition, 1, n)) @ vectors.T
    return ((matrix + matrix.T) / 2).astype(dtype)


def general(n, condition=10.0, *, seed=0, dtype="float64"):
    """Return a matrix whose singular values range from ``1 / condition`` to 1."""
    rng = np.random.default_rng(seed)
    left, _ = np.linalg.qr(rng.normal(size=(n, n)))
    right, _ = np.linalg.qr(rng.normal(size=(n, n)))
    return ((left * np.geomspace(1 / condition, 1, n)) @ right.T).astype(dtype)


LAYOUTS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "neither": lambda array: np.repeat(np.repeat(array, 2, axis=0), 2, axis=1)[::2, ::2],
    "reversed": lambda array: np.ascontiguousarray(array[::-1, ::-1])[::-1, ::-1],
}
