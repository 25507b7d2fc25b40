"""Underlying constants: most variables are recognized at once as not constant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.tensor import basic

from pytensor_fuse._pytensor.ops import underlying_constants
from pytensor_fuse._pytensor.patching.drop_ins import AddedMethod, ReplacedCode, Together

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patching.patches import Patch

# Globals of the replaced code, which runs in a module of PyTensor.
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
    return Together(
        AddedMethod(basic, "_pytensor_fuse_value_of", underlying_constants.value_of),
        AddedMethod(basic, "_pytensor_fuse_stock", underlying_constants.stock_search()),
        ReplacedCode(underlying_constants.SEARCH, _get_value),
    )
