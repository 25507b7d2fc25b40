"""Accelerators: faster drop-ins for functions of PyTensor, with the same results and effects.

Each folder is one accelerator, named as its switch. ``ACCELERATOR`` in its ``__init__`` is its
record; ``patch`` in its ``drop_in`` constructs its patch. A drop-in does the same as PyTensor's
function in the releases whose fingerprints the record lists: the same values in the same order, the
same events, the same errors.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pytensor_fuse._accelerators.record import Accelerator
    from pytensor_fuse._pytensor.patching.patches import Patch

# In the order in which they are switched on.
NAMES: Final = (
    *("instance_checks", "graph_edits", "validation", "cycles", "order", "rewriter_loops"),
    *("queries", "assumptions", "blank_assumptions", "no_gemm", "elemwise_nodes", "clones"),
    *("tensor_types", "sum_factors", "prefilters", "canonizers", "underlying_constants"),
    *("increments", "whole_kernels", "virtual_machines", "inner_functions"),
    *("special_functions", "sparse_checks"),
)


def record_of(name: str) -> Accelerator:
    """Return the record of an accelerator."""
    found: Accelerator = import_module(f"{__name__}.{name}").ACCELERATOR
    return found


def patch_of(name: str) -> Patch:
    """Return the patch of an accelerator, which imports what it replaces."""
    made: Patch = import_module(f"{__name__}.{name}.drop_in").patch()
    return made
