"""Identity elements of combiners, with which reductions and accumulations begin."""

from __future__ import annotations

import math


def identity(combiner: str, dtype: str) -> bool | int | float:
    """Return the identity element of a combiner, exact to the bit.

    For sums of floats it is -0.0: adding 0.0 changes the sign of -0.0.
    """
    if combiner == "add":
        return -0.0 if dtype[0] == "f" else 0
    if combiner in ("or", "xor"):
        return 0
    if combiner == "mul":
        return 1
    if combiner == "and":
        return True if dtype == "bool" else -1 if dtype[0] == "i" else (1 << int(dtype[1:])) - 1
    if dtype[0] == "f":
        return -math.inf if combiner == "maximum" else math.inf
    if dtype == "bool":
        return combiner == "minimum"
    bits = int(dtype[1:])
    if dtype[0] == "u":
        least, most = 0, (1 << bits) - 1
    else:
        least, most = -(1 << bits - 1), (1 << bits - 1) - 1
    return least if combiner == "maximum" else most
