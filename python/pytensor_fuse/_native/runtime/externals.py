"""Functions of SciPy by address: those that programs call and the C library does not have."""

from __future__ import annotations

import ctypes
import re
from functools import cache
from typing import Any, Final

from pytensor_fuse._native.emission.calls import OF_FLOATS, SCIPY

# Operations that SciPy has another name for.
_NAMES: Final = {"digamma": "psi", "gammaln": "gammaln"}


@cache
def address_of(symbol: str) -> int:
    """Return the address of a function of `scipy.special.cython_special`.

    Its last argument is an integer more, which Cython adds to some functions and which all others
    ignore.

    Parameters
    ----------
    symbol
        ``scipy.`` and the name of the operation, for one of doubles. ``.float`` follows for one of
        single precision.

    Raises
    ------
    RuntimeError
        If SciPy has no such function.
    """
    from scipy.special import cython_special

    kind, other = ("float", "double") if symbol.endswith(OF_FLOATS) else ("double", "float")
    operation = symbol.removeprefix(SCIPY).removesuffix(OF_FLOATS)
    name = _NAMES.get(operation, operation)
    functions: dict[str, Any] = cython_special.__pyx_capi__
    for found in sorted(functions):
        if re.fullmatch(rf"(__pyx_fuse_\d+)?{re.escape(name)}", found):
            signature = _signature(functions[found])
            if signature.startswith(f"{kind} ({kind}".encode()) and not re.search(
                f"complex|{other}".encode(), signature
            ):
                return _pointer(functions[found], signature)
    raise RuntimeError(f"scipy.special.cython_special has no {name} of {kind}s")


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
