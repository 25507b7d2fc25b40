"""Virtual machines: the one in C is not compiled or imported for functions that run without C."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.link.vm import VMLinker

from pytensor_fuse._pytensor import virtual_machines
from pytensor_fuse._pytensor.drop_ins import DropIn

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patches import Patch


def patch() -> Patch:
    """Return the patch."""
    return DropIn(VMLinker, "make_vm", virtual_machines.make_vm)
