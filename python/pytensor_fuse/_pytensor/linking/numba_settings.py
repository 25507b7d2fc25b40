"""Numba's settings, and whether it compiles at all.

The code that Numba generates for a graph depends on its own settings, which a program may change at
any time, and on its compiling functions: PyTensor's tests, for one, replace `njit` by a function
that returns its argument.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from pytensor_fuse._pytensor.compat.packages import package_of

# The settings that affect the generated code.
_SETTINGS: Final = (
    *("BOUNDSCHECK", "CPU_FEATURES", "CPU_NAME", "DEBUGINFO_DEFAULT", "DISABLE_INTEL_SVML"),
    *("DISABLE_JIT", "ENABLE_AVX", "ERROR_MODEL", "EXTEND_VARIABLE_LIFETIMES", "LOOP_VECTORIZE"),
    *("OPT", "OPT_DEBUGINFO", "SLP_VECTORIZE"),
)
# The functions that compile, by module. PyTensor's functions compile those of nodes.
_COMPILERS: Final = (
    ("numba", "njit"),
    ("numba", "vectorize"),
    ("pytensor.link.numba.dispatch.basic", "numba_njit"),
)
_KNOWN: Final = ("numba", "pytensor", "pytensor_fuse")


def numba_settings() -> tuple[Any, ...]:
    """Return Numba's settings, and the functions that compile.

    For a module that has not been imported, they are the functions that it will define.
    """
    from numba import config

    told = [(name, getattr(config, name, None)) for name in _SETTINGS]
    return (*told, *(_compiler(module, name) for module, name in _COMPILERS))


def _compiler(module: str, name: str) -> Any:
    """Return a function that compiles; its name if the function is PyTensor's, Numba's or ours."""
    found = getattr(sys.modules.get(module), name, None)
    if found is None:
        return name
    home = package_of(getattr(found, "__globals__", {}).get("__name__"))
    return name if home in _KNOWN else found


def compiles(settings: tuple[Any, ...]) -> bool:
    """Whether Numba compiles functions under these settings."""
    return ("DISABLE_JIT", 0) in settings and not any(map(callable, settings))


def is_compiled(function: Any) -> bool:
    """Whether a function is one of Numba's, and not a Python function that stayed uncompiled."""
    from numba.core.dispatcher import Dispatcher

    return isinstance(function, Dispatcher)
