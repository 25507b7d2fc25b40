"""What a function of machine code takes and gives, as Numba is told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import from_dtype, types

if TYPE_CHECKING:
    from pytensor_fuse._native.program.model import Failure


class Given(NamedTuple):
    """An input.

    Attributes
    ----------
    dtype
        Its dtype.
    shape
        Its lengths, -1 where one is not known.
    is_scalar
        Whether it is a scalar, and no array without dimensions.
    is_overwritten
        Whether the machine code writes to it.
    """

    dtype: str
    shape: tuple[int, ...]
    is_scalar: bool
    is_overwritten: bool


class Returned(NamedTuple):
    """An output.

    Attributes
    ----------
    kind
        ``fresh``, or ``input`` or ``output`` if it is one of those.
    number
        Which input or output it is.
    dtype
        Its dtype.
    ndim
        How many dimensions it has.
    is_scalar
        Whether it is a scalar, and no array without dimensions.
    """

    kind: str
    number: int
    dtype: str
    ndim: int
    is_scalar: bool


class Interface(NamedTuple):
    """What a function takes and gives.

    Attributes
    ----------
    inputs, outputs
        Its inputs and outputs.
    failures
        What it raises.
    is_single
        Whether it returns its only output itself, and no tuple.
    n_scratch
        How many bytes of memory it needs while it runs; None if that is not known before.
    """

    inputs: tuple[Given, ...]
    outputs: tuple[Returned, ...]
    failures: tuple[Failure, ...]
    is_single: bool = False
    n_scratch: int | None = None

    def returns(self) -> Any:
        """Return Numba's type of what is returned."""
        kinds = [type_of(one.dtype, one.ndim, one.is_scalar) for one in self.outputs]
        if self.is_single:
            return kinds[0]
        return types.Tuple(kinds) if kinds else types.none


def type_of(dtype: str, ndim: int, is_scalar: bool) -> Any:
    """Return Numba's type of an array that is C-contiguous, or of a scalar."""
    element = from_dtype(np.dtype(dtype))
    return element if is_scalar else types.Array(element, ndim, "C")
