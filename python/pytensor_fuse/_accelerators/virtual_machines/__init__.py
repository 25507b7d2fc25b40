"""Virtual machines: the one in C is not compiled or imported for functions that run without C."""

from __future__ import annotations

from typing import Final

from pytensor_fuse._accelerators.record import Accelerator
from pytensor_fuse._pytensor.compat.checks import Does, Takes

ACCELERATOR: Final = Accelerator(
    title="functions that run without C do not compile PyTensor's C virtual machine",
    replaces="VMLinker.make_vm",
    skips=(
        "the import of the virtual machine in C by functions that run without it, as in mode "
        "FAST_COMPILE. A new compile directory compiles it first, which takes half a second. "
        "PyMC computes initial points in that mode, and nutpie shapes"
    ),
    ground=(
        Does("pytensor.link.vm:VMLinker.make_vm"),
        Takes(
            "pytensor.link.vm:VMLinker.make_vm",
            (
                "self, nodes, thunks, input_storage, output_storage, storage_map, "
                "post_thunk_clear, computed, compute_map, updated_vars",
            ),
        ),
    ),
)
