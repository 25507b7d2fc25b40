"""Ops that make the inverse of a matrix from a factorization of it, as LAPACK's potri and getri do.

They are written as PyTensor's own linear algebra is: for one matrix, in `Blockwise` for batches;
in place once a pass allows it; run by SciPy from C code and Python, and by Numba through the
addresses in SciPy's ``cython_lapack``. A factor that is singular gives NaN in all of them, as does
the NaN that PyTensor's factorizations give where they fail.

Wherever there is such an op, also an unpickled one, this package has been imported: so this is
where Numba's implementations are registered, once Numba's dispatch is there, which may be never.
"""

from contextlib import suppress
from importlib import import_module

from pytensor_fuse._imports import after_import


def _register_numba() -> None:
    # Importing PyTensor's dispatch must not fail because of us. Without these implementations
    # Numba calls back to Python, as for any op that it does not know.
    with suppress(Exception):
        import_module("pytensor_fuse._linalg.ops.numba")


after_import("pytensor.link.numba.dispatch", _register_numba)
