"""Ops that compute the inverse of a matrix from its factorization, by LAPACK's potri and getri.

They follow PyTensor's own linear algebra: for one matrix, in `Blockwise` for batches; in place once
a pass allows it; run by SciPy from C code and Python, and by Numba through the addresses in SciPy's
``cython_lapack``. A singular factor gives NaN in all of them, as does the NaN of PyTensor's
factorizations when they fail.

A program that has such an op, also an unpickled one, has imported this package. Numba's
implementations are therefore registered here, once Numba's dispatch is imported, which may never
happen.
"""

from contextlib import suppress
from importlib import import_module

from pytensor_fuse._imports import after_import


def _register_numba() -> None:
    # The import of PyTensor's dispatch must not fail because of us. Without these implementations
    # Numba calls back to Python, as for any op that it does not know.
    with suppress(Exception):
        import_module("pytensor_fuse._linalg.ops.numba")


after_import("pytensor.link.numba.dispatch", _register_numba)
