"""Random draws: NumPy's C functions for distributions, called with a generator's address.

A distribution has one line: its name, the dtypes of its parameters, the dtype of its result, and
the C function in the library of `numpy.random`::

    gamma  f64 f64  f64  random_gamma

The function takes the generator, and the parameters in the line's order. A further word adds
arguments: ``memory`` is the address of a buffer in which the function caches quantities derived
from its parameters, all zeros at first, and ``unmasked`` stands for the two arguments that select
Lemire's method for bounded integers.

NumPy's ``distributions.h`` documents the functions. The methods of NumPy's `Generator` call the
same functions, so programs draw the same numbers and leave the same state.
"""

from __future__ import annotations

import ctypes
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

# The prefix of the functions' symbols.
SYMBOLS: Final = "numpy."
# At least the size of NumPy's `binomial_t`, in bytes.
MEMORY_BYTES: Final = 256

_LINES: Final = """
standard_uniform      -            f64  random_standard_uniform
uniform               f64 f64      f64  random_uniform
standard_normal       -            f64  random_standard_normal
lognormal             f64 f64      f64  random_lognormal
exponential           f64          f64  random_exponential
gamma                 f64 f64      f64  random_gamma
beta                  f64 f64      f64  random_beta
standard_t            f64          f64  random_standard_t
standard_cauchy       -            f64  random_standard_cauchy
laplace               f64 f64      f64  random_laplace
logistic              f64 f64      f64  random_logistic
gumbel                f64 f64      f64  random_gumbel
weibull               f64          f64  random_weibull
triangular            f64 f64 f64  f64  random_triangular
vonmises              f64 f64      f64  random_vonmises
wald                  f64 f64      f64  random_wald
poisson               f64          i64  random_poisson
binomial              f64 i64      i64  random_binomial memory
negative_binomial     f64 f64      i64  random_negative_binomial
geometric             f64          i64  random_geometric
hypergeometric        i64 i64 i64  i64  random_hypergeometric
bounded_integer       u64 u64      u64  random_bounded_uint64 unmasked
"""


class Distribution(NamedTuple):
    """A distribution and the function that draws from it.

    Attributes
    ----------
    name
        Its name in programs.
    takes
        The dtypes of its parameters.
    gives
        The dtype of the number that it draws.
    function
        The C function.
    more
        Its further arguments: ``memory``, ``unmasked``, or empty for none.
    """

    name: str
    takes: tuple[str, ...]
    gives: str
    function: str
    more: str


def _distribution(line: str) -> Distribution:
    words = line.split()
    more = words.pop() if words[-1] in ("memory", "unmasked") else ""
    name, *takes, gives, function = words
    takes = [dtype for dtype in takes if dtype != "-"]
    return Distribution(name, tuple(takes), gives, function, more)


DRAWS: Final = {one.name: one for one in map(_distribution, _LINES.strip().splitlines())}


@cache
def _library() -> ctypes.CDLL:
    # The module is not part of NumPy's public interface, but all versions have it.
    return ctypes.CDLL(import_module("numpy.random._generator").__file__ or "")


@cache
def draw_address(function: str) -> int:
    """Return the address of a function of `numpy.random`'s library.

    Raises
    ------
    RuntimeError
        If NumPy has no such function, or does not export it.
    """
    try:
        found = getattr(_library(), function)
    except (AttributeError, OSError) as error:
        raise RuntimeError(f"numpy.random has no function {function}: {error}") from error
    address = ctypes.cast(found, ctypes.c_void_p).value
    assert address is not None
    return address


_C_TYPES: Final[dict[str, Any]] = {
    "f64": ctypes.c_double,
    "i64": ctypes.c_int64,
    "u64": ctypes.c_uint64,
}
_NUMPY: Final[dict[str, Any]] = {"f64": np.float64, "i64": np.int64, "u64": np.uint64}


def run_draw(distribution: Distribution, generator: int, args: Sequence[Any]) -> Any:
    """Draw a number, as a NumPy scalar.

    Parameters
    ----------
    distribution
        The distribution.
    generator
        The address of the generator's ``bitgen_t``.
    args
        The parameters.
    """
    kinds = [_C_TYPES[dtype] for dtype in distribution.takes]
    given = [kind(one.item()) for kind, one in zip(kinds, args, strict=True)]
    memory = ctypes.create_string_buffer(MEMORY_BYTES)
    if distribution.more == "memory":
        kinds.append(ctypes.c_void_p)
        given.append(ctypes.addressof(memory))
    elif distribution.more == "unmasked":
        kinds += [ctypes.c_uint64, ctypes.c_bool]
        given += [0, False]
    made = ctypes.CFUNCTYPE(_C_TYPES[distribution.gives], ctypes.c_void_p, *kinds)
    function = made(draw_address(distribution.function))
    return _NUMPY[distribution.gives](function(generator, *given))
