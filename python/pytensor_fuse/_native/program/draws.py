"""Random numbers: the functions of NumPy that draw them, by a generator's address.

A distribution has one line: its name, the dtypes of its parameters, that of what it draws, and the
function of C in the library of `numpy.random`::

    normal  f64 f64  f64  random_normal

The function takes the generator, the parameters in the line's order and, if the line ends with
``+memory``, the address of memory that it keeps what it knows of its parameters in, which is all
zeros before it knows anything. NumPy's ``distributions.h`` documents the functions, and NumPy's own
methods of a `Generator` call them: so they draw the same numbers, and leave the same state.
"""

from __future__ import annotations

import ctypes
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

# How the symbols of the functions begin.
SYMBOLS: Final = "numpy."
# At least what a `binomial_t` of NumPy takes, in bytes.
MEMORY_BYTES: Final = 256

_LINES: Final = """
standard_uniform      -                f64  random_standard_uniform
uniform               f64 f64          f64  random_uniform
standard_normal       -                f64  random_standard_normal
normal                f64 f64          f64  random_normal
"""


class Distribution(NamedTuple):
    """A function that draws.

    Attributes
    ----------
    name
        Its name in programs.
    takes
        The dtypes of its parameters.
    gives
        That of what it draws.
    function
        The function of C.
    has_memory
        Whether it is given memory.
    """

    name: str
    takes: tuple[str, ...]
    gives: str
    function: str
    has_memory: bool


def _distribution(line: str) -> Distribution:
    name, *takes, gives, function = line.removesuffix("+memory").split()
    takes = [dtype for dtype in takes if dtype != "-"]
    return Distribution(name, tuple(takes), gives, function, line.endswith("+memory"))


DRAWS: Final = {one.name: one for one in map(_distribution, _LINES.strip().splitlines())}


@cache
def _library() -> ctypes.CDLL:
    # NumPy does not list the module among those of its interface, but all versions have it.
    return ctypes.CDLL(import_module("numpy.random._generator").__file__ or "")


@cache
def draw_address(function: str) -> int:
    """Return the address of a function of `numpy.random`'s library.

    Raises
    ------
    RuntimeError
        If NumPy has no such function, or does not show it.
    """
    try:
        found = getattr(_library(), function)
    except (AttributeError, OSError) as error:
        raise RuntimeError(f"numpy.random has no function {function}: {error}") from error
    address = ctypes.cast(found, ctypes.c_void_p).value
    assert address is not None
    return address


_C_TYPES: Final[dict[str, Any]] = {"f64": ctypes.c_double, "i64": ctypes.c_int64}
_NUMPY: Final[dict[str, Any]] = {"f64": np.float64, "i64": np.int64}


def run_draw(distribution: Distribution, generator: int, args: Sequence[Any]) -> Any:
    """Draw a number, as a scalar of NumPy's.

    Parameters
    ----------
    distribution
        What is drawn.
    generator
        The address of the generator's ``bitgen_t``.
    args
        The parameters.
    """
    kinds = [_C_TYPES[dtype] for dtype in distribution.takes]
    given = [kind(one.item()) for kind, one in zip(kinds, args, strict=True)]
    if distribution.has_memory:
        kinds.append(ctypes.c_void_p)
        given.append(ctypes.create_string_buffer(MEMORY_BYTES))
    made = ctypes.CFUNCTYPE(_C_TYPES[distribution.gives], ctypes.c_void_p, *kinds)
    address = draw_address(distribution.function)
    if distribution.has_memory:
        given[-1] = ctypes.addressof(given[-1])
    return _NUMPY[distribution.gives](made(address)(generator, *given))
