"""External functions: the addresses of functions of SciPy and NumPy that programs call."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

from pytensor_fuse._native.emission.calls import OF_FLOATS, SCIPY
from pytensor_fuse._native.program.external.addresses import (
    LIBRARIES,
    capsule_name,
    capsule_pointer,
    routine_address,
)
from pytensor_fuse._native.program.external.draws import SYMBOLS, draw_address

# Operations that SciPy knows by another name.
_NAMES: Final = {"digamma": "psi", "gammaln": "gammaln"}


@cache
def address_of(symbol: str) -> int:
    """Return the address of a function of BLAS, LAPACK, `scipy.special` or `numpy.random`.

    Functions of `scipy.special` take one more integer argument at the end: Cython adds it to some
    of them, and all others ignore it.

    Parameters
    ----------
    symbol
        ``blas.dgemm`` and the like; or ``scipy.`` and the name of the operation on doubles, with
        the suffix ``.float`` for single precision; or ``numpy.random_gamma`` and the like.

    Raises
    ------
    RuntimeError
        If there is no such function.
    """
    if symbol.startswith(tuple(LIBRARIES)):
        return routine_address(symbol)
    if symbol.startswith(SYMBOLS):
        return draw_address(symbol.removeprefix(SYMBOLS))
    from scipy.special import cython_special

    kind, other = ("float", "double") if symbol.endswith(OF_FLOATS) else ("double", "float")
    operation = symbol.removeprefix(SCIPY).removesuffix(OF_FLOATS)
    name = _NAMES.get(operation, operation)
    functions: dict[str, Any] = cython_special.__pyx_capi__
    for found in sorted(functions):
        if re.fullmatch(rf"(__pyx_fuse_\d+)?{re.escape(name)}", found):
            signature = capsule_name(functions[found])
            if signature.startswith(f"{kind} ({kind}".encode()) and not re.search(
                f"complex|{other}".encode(), signature
            ):
                return capsule_pointer(functions[found])
    raise RuntimeError(f"scipy.special.cython_special has no {name} of {kind}s")
