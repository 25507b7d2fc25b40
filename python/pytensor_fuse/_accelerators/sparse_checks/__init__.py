"""Sparse data: `scipy.sparse` is not imported to recognize that values are dense."""

from __future__ import annotations

from typing import Final

from pytensor_fuse._accelerators.record import Accelerator
from pytensor_fuse._pytensor.compat.checks import Does, DoesIfThere

ACCELERATOR: Final = Accelerator(
    title="data and ops are checked for sparsity without importing scipy.sparse",
    replaces="_LazyScipyModule.__getattr__ and the code of _get_underlying_scalar_constant_value",
    skips=(
        "the import of `scipy.sparse`, 80 ms: PyMC checks whether observations are sparse, and "
        "rewriters whether an op makes a sparse matrix. None is before that import"
    ),
    ground=(
        DoesIfThere("pytensor.utils:_LazyScipyModule.__getattr__"),
        Does("pytensor.tensor.basic:_get_underlying_scalar_constant_value"),
    ),
)
