"""What Numba is set to, and whether it compiles at all.

What Numba makes of a graph depends on settings of its own, which a program may change at any time,
and on who compiles: PyTensor's tests, for one, put a function in the place of `njit` that returns
its argument.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from pytensor_fuse._pytensor.compat.packages import package_of

# The settings that decide which code is made.
_SETTINGS: Final = (
    "BOUNDSCHECK",
    "CPU_FEATURES",
    "CPU_NAME",
    "DEBUGINFO_DEFAULT",
    "DISABLE_INTEL_SVML",
    "DISABLE_JIT",
    "ENABLE_AVX",
    "ERROR_MODEL",
    "EXTEND_VARIABLE_LIFETIMES",
    "LOOP_VECTORIZE",
    "OPT",
    "OPT_DEBUGINFO",
    "SLP_VECTORIZE",
)
# The functions that compile, by module. Those of nodes are compiled by PyTensor's.
_COMPILERS: Final = (
    ("numba", "njit"),
    ("numba", "vectorize"),
    ("pytensor.link.numba.dispatch.basic", "numba_njit"),
)
_KNOWN: Final = ("numba", "pytensor", "pytensor_fuse")


def numba_settings() -> tuple[Any, ...]:
    """Return what Numba is set to, and the functions that compile what it is given.

    The functions of a module that has not been imported are those that it will have.
    """
    from numba import config

    told = [(name, getattr(config, name, None)) for name in _SETTINGS]
    return (*told, *(_compiler(module, name) for module, name in _COMPILERS))


def _compiler(module: str, name: str) -> Any:
    """Return a function that compiles; for one that is where its name says, the name."""
    found = getattr(sys.modules.get(module), name, None)
    if found is None:
        return name
    home = package_of(getattr(found, "__globals__", {}).get("__name__"))
    return name if home in _KNOWN else found


def compiles(settings: tuple[Any, ...]) -> bool:
    """Whether Numba compiles what it is given, under settings."""
    return ("DISABLE_JIT", 0) in settings and not any(map(callable, settings))


def is_compiled(function: Any) -> bool:
    """Whether a function is one of Numba's, and not a Python function that was to become one."""
    from numba.core.dispatcher import Dispatcher

    return isinstance(function, Dispatcher)
