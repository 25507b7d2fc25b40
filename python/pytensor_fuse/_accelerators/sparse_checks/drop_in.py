"""Sparse data: `scipy.sparse` is not imported to recognize that values are dense."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from pytensor import utils

from pytensor_fuse._pytensor.ops.sparse_data import SEARCH, search_without_import
from pytensor_fuse._pytensor.patching.drop_ins import DropIn, ReplacedCode, Together

if TYPE_CHECKING:
    from pytensor_fuse._pytensor.patching.patches import Patch

_SCIPY: Final = "scipy.sparse"

# PyTensor 3.0.0 has no such class: it imports SciPy at once.
_Lazy: Any = getattr(utils, "_LazyScipyModule", None)
_stock_getattr: Any = getattr(_Lazy, "__getattr__", None)


def _getattr(self: Any, name: str) -> Any:
    if name == "issparse" and self._name == _SCIPY and _SCIPY not in sys.modules:
        return _issparse
    return _stock_getattr(self, name)


def _issparse(x: object) -> bool:
    if _SCIPY not in sys.modules:
        return False
    from scipy.sparse import issparse

    return bool(issparse(x))


def patch() -> Patch:
    """Return the patch."""
    patches: list[Patch] = [ReplacedCode(SEARCH, search_without_import())]
    if _Lazy is not None:
        patches.append(DropIn(_Lazy, "__getattr__", _getattr))
    return Together(patches)
