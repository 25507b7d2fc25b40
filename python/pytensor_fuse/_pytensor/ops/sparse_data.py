"""Dense data and ops, recognized without importing the sparse classes.

PyMC asks `scipy.sparse` whether observations are sparse, and PyTensor's search for a constant asks
`pytensor.sparse` for the class of one op. Together the imports take 80 ms, most of it for NumPy's
tools for Fortran and tests, which SciPy imports with the rest of NumPy; and the objects that they
leave in memory make a full garbage collection likely, which takes as long again. No object has a
class from a module that has not been imported.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from pytensor import utils

from pytensor_fuse._pytensor.patching.drop_ins import DropIn, Together

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytensor_fuse._pytensor.patching.patches import Patch

_SCIPY: Final = "scipy.sparse"
PACKAGE: Final = "pytensor.sparse"

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


def checks_without_import() -> Patch:
    """Return the patch of the SciPy modules that PyTensor and PyMC import on first use."""
    patches: Iterable[Patch] = () if _Lazy is None else [DropIn(_Lazy, "__getattr__", _getattr)]
    return Together(*patches)


class _NoOp:
    """A class without instances."""


def __getattr__(name: str) -> Any:
    """Return the class of `pytensor.sparse` that PyTensor's search for a constant uses."""
    if name == "CSM":
        return getattr(sys.modules.get(f"{PACKAGE}.basic"), name, _NoOp)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
