"""Virtual machines: for functions that run without C, that of C is not compiled and imported.

The linker of virtual machines imports the one that is written in C before it looks whether the
function is to have it. Mode FAST_COMPILE, in which PyMC computes initial points and nutpie shapes,
never has it, and where the compile directory is new, the C compiler works half a second in vain.
"""

from __future__ import annotations

import builtins
import sys
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

from pytensor.link import vm
from pytensor.link.vm import VMLinker

from pytensor_fuse._pytensor.compat.checks import plain_function
from pytensor_fuse._pytensor.patching.drop_ins import DropIn

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patching.patches import Patch

MODULE: Final = "pytensor.link.c.cvm"

_stock: Final[Any] = vm.VMLinker.make_vm


def make_vm(self: vm.VMLinker, *args: Any, **kwargs: Any) -> Any:
    make = _stock if self.use_cloop or MODULE in sys.modules else _without_c()
    return make(self, *args, **kwargs)


def _without_c() -> Any:
    """Return PyTensor's own function where the machine of C cannot be imported."""
    scope = {**vars(vm), "__builtins__": {**vars(builtins), "__import__": _import}}
    return FunctionType(plain_function(_stock).__code__, scope)


def _import(name: str, *args: Any, **kwargs: Any) -> Any:
    if name == MODULE:
        raise ImportError(f"a function that runs without C needs no {name}", name=name)
    return builtins.__import__(name, *args, **kwargs)


def patch() -> Patch:
    """Return the patch."""
    return DropIn(VMLinker, "make_vm", make_vm)
