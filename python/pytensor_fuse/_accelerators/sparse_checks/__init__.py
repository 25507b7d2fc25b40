"""Sparse data: dense values are recognized without importing `scipy.sparse`."""

from __future__ import annotations

from typing import Final

from pytensor_fuse._accelerators.record import Accelerator
from pytensor_fuse._pytensor.compat.checks import DoesIfThere

ACCELERATOR: Final = Accelerator(
    title="data are checked for sparsity without importing scipy.sparse",
    replaces="_LazyScipyModule.__getattr__",
    skips=(
        "the import of `scipy.sparse`, 80 ms, when PyMC checks whether observations are "
        "sparse: none is before that import"
    ),
    ground=(DoesIfThere("pytensor.utils:_LazyScipyModule.__getattr__"),),
)
