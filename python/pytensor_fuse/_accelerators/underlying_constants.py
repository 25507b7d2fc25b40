"""The search for a constant beneath a variable: most variables are seen at once to have none."""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any

from pytensor.tensor import basic

from pytensor_fuse._pytensor import underlying_constants
from pytensor_fuse._pytensor.drop_ins import AddedMethod, ReplacedCode, Together

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patches import Patch

# What the code finds in the module of PyTensor's that it runs in.
_pytensor_fuse_value_of: Any = None
_pytensor_fuse_stock: Any = None


def _get_value(
    orig_v: Any, elemwise: Any = True, only_process_constants: Any = False, max_recur: Any = 10
) -> Any:
    value = _pytensor_fuse_value_of(orig_v, elemwise, only_process_constants, max_recur)
    if value is not None:
        return value
    return _pytensor_fuse_stock(orig_v, elemwise, only_process_constants, max_recur)


def patch() -> Patch:
    """Return the patch."""
    searched: Any = basic._get_underlying_scalar_constant_value
    stock = FunctionType(
        searched.__code__, searched.__globals__, searched.__name__, searched.__defaults__
    )
    return Together(
        [
            AddedMethod(basic, "_pytensor_fuse_value_of", underlying_constants.value_of),
            AddedMethod(basic, "_pytensor_fuse_stock", stock),
            ReplacedCode(searched, _get_value),
        ]
    )
