"""Inner functions of ops such as Scan: linked without C where the function around them is.

A linker that makes no thunks in C says so to each op. Ops with inner functions then link these by a
virtual machine that still makes thunks in C, and has each compiled. PyMC computes initial points,
which run once, in mode FAST_COMPILE: for the matrices of an LKJ prior, whose variables are drawn by
a Scan, the C compiler worked for seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.link.vm import VMLinker

from pytensor_fuse._pytensor.patching.drop_ins import DropIn

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patching.patches import Patch


def link_mode(self: Any, impl: str | None) -> Any:
    # PyTensor 3.3 has it; this accelerator is not for older versions.
    from pytensor.compile.inner_function import link_only_mode

    if impl == "py":
        return link_only_mode(VMLinker(use_cloop=False, c_thunks=False))
    return link_only_mode("cvm" if impl == "c" else "vm")


def patch() -> Patch:
    """Return the patch."""
    # PyTensor 3.3 has the method; this accelerator is not for older versions.
    from pytensor.compile.inner_function import HasInnerFunction

    return DropIn(HasInnerFunction, "link_mode", link_mode)
