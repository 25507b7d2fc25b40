"""PyTensor's search for an underlying constant, with and without the import of sparse ops.

The search asks `pytensor.sparse` for the class of one op. That import and the one of `scipy.sparse`
take 80 ms together, most of it for NumPy's tools for Fortran and tests, which SciPy imports with
all that NumPy has; and the objects that they leave in memory make a full garbage collection likely,
which takes as long again. No op is of a class of a module that has not been imported.
"""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any, Final

from pytensor.tensor import basic

_PACKAGE: Final = "pytensor.sparse"
SEARCH: Any = basic._get_underlying_scalar_constant_value


def search_without_import() -> FunctionType:
    """Return the search; it imports the class of the sparse op from here."""
    code = SEARCH.__code__
    names = tuple(__name__ if name == _PACKAGE else name for name in code.co_names)
    return FunctionType(code.replace(co_names=names), SEARCH.__globals__)


def search_imports_sparse() -> bool:
    """Whether the search, as it is now, imports `pytensor.sparse`."""
    return _PACKAGE in SEARCH.__code__.co_names


class _NoOp:
    """The class of no op."""


def __getattr__(name: str) -> Any:
    """Return the class of `pytensor.sparse` that the search asks for."""
    if name == "CSM":
        return getattr(sys.modules.get(f"{_PACKAGE}.basic"), name, _NoOp)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
