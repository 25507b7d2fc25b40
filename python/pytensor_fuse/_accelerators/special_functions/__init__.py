"""Special functions: constant folding does not import `scipy.special`."""

from __future__ import annotations

from typing import Final

from pytensor_fuse._accelerators.record import Accelerator
from pytensor_fuse._pytensor.compat.checks import Does, Has

ACCELERATOR: Final = Accelerator(
    title="constants are folded without importing scipy.special",
    replaces="import_func_from_string where Elemwise calls it",
    skips=(
        "the import of `scipy.special`, 70 ms, when a constant is folded by one of its "
        "ufuncs: their extension module is loaded alone"
    ),
    ground=(
        Does("pytensor.tensor.utils:import_func_from_string"),
        Has("pytensor.tensor.elemwise", "import_func_from_string"),
    ),
)
