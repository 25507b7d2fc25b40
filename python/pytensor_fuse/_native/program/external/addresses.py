"""Addresses of SciPy's BLAS and LAPACK functions, from the modules that it exports to Cython."""

from __future__ import annotations

import ctypes
from functools import cache
from importlib import import_module
from typing import Any, Final

# The prefix of the functions' symbols for each library, and the module that exports them.
LIBRARIES: Final = {"blas.": "scipy.linalg.cython_blas", "lapack.": "scipy.linalg.cython_lapack"}


@cache
def routine_address(symbol: str) -> int:
    """Return the address of a function of BLAS or LAPACK.

    Its arguments are pointers, as in Fortran, and its integers have 32 bits.

    Parameters
    ----------
    symbol
        The library and the function, such as ``blas.dgemm`` or ``lapack.dpotrf``.

    Raises
    ------
    RuntimeError
        If SciPy has no such function.
    """
    library, _, name = symbol.partition(".")
    module = LIBRARIES[f"{library}."]
    functions: dict[str, Any] = import_module(module).__pyx_capi__
    capsule = functions.get(name)
    if capsule is None:
        raise RuntimeError(f"{module} has no {name}")
    return capsule_pointer(capsule)


def capsule_name(capsule: Any) -> bytes:
    """Return the name of a capsule, which for a Cython function is its signature."""
    function = ctypes.pythonapi.PyCapsule_GetName
    function.restype, function.argtypes = ctypes.c_char_p, [ctypes.py_object]
    name: bytes = function(capsule)
    return name


def capsule_pointer(capsule: Any) -> int:
    """Return the address that a capsule holds."""
    function = ctypes.pythonapi.PyCapsule_GetPointer
    function.restype, function.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address: int = function(capsule, capsule_name(capsule))
    return address
