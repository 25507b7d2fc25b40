"""Functions of SciPy by address: those that programs call and no library has a vector form of."""

from __future__ import annotations

import ctypes
import re
from functools import cache
from typing import Any, Final

# Operations that SciPy has another name for.
_NAMES: Final = {"digamma": "psi", "gammaln": "gammaln"}


@cache
def address_of(symbol: str) -> int:
    """Return the address of a function of `scipy.special.cython_special` that takes doubles.

    Its last argument is an integer more, which Cython adds to some functions and which all others
    ignore.

    Parameters
    ----------
    symbol
        ``scipy.`` and the name of the operation.

    Raises
    ------
    RuntimeError
        If SciPy has no such function for doubles.
    """
    from scipy.special import cython_special

    operation = symbol.removeprefix("scipy.")
    name = _NAMES.get(operation, operation)
    functions: dict[str, Any] = cython_special.__pyx_capi__
    for found in sorted(functions):
        if re.fullmatch(rf"(__pyx_fuse_\d+)?{re.escape(name)}", found):
            signature = _signature(functions[found])
            if signature.startswith(b"double (double") and not re.search(
                rb"complex|float", signature
            ):
                return _pointer(functions[found], signature)
    raise RuntimeError(f"scipy.special.cython_special has no {name} of doubles")


def _signature(capsule: Any) -> bytes:
    function = ctypes.pythonapi.PyCapsule_GetName
    function.restype, function.argtypes = ctypes.c_char_p, [ctypes.py_object]
    name: bytes = function(capsule)
    return name


def _pointer(capsule: Any, signature: bytes) -> int:
    function = ctypes.pythonapi.PyCapsule_GetPointer
    function.restype, function.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address: int = function(capsule, signature)
    return address
