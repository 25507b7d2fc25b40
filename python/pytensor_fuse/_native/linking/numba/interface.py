"""Interface of a function of machine code: inputs, outputs and failures, for Numba."""

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
        Its lengths, -1 where one is unknown.
    is_scalar
        Whether it is a scalar instead of an array without dimensions.
    is_overwritten
        Whether the machine code overwrites it.
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
        ``fresh``, or ``input`` or ``output`` if it is an alias.
    number
        The number of the aliased input or output.
    dtype
        Its dtype.
    ndim
        The number of dimensions.
    is_scalar
        Whether it is a scalar instead of an array without dimensions.
    """

    kind: str
    number: int
    dtype: str
    ndim: int
    is_scalar: bool


class Interface(NamedTuple):
    """The inputs, outputs and failures of a function.

    Attributes
    ----------
    inputs, outputs
        Its inputs and outputs.
    failures
        The exceptions that it may raise.
    is_single
        Whether it returns its only output without a tuple.
    n_scratch
        The number of bytes of scratch memory that it needs; None if unknown before the call.
    """

    inputs: tuple[Given, ...]
    outputs: tuple[Returned, ...]
    failures: tuple[Failure, ...]
    is_single: bool = False
    n_scratch: int | None = None

    def returns(self) -> Any:
        """Return Numba's type of the result."""
        kinds = [type_of(one.dtype, one.ndim, one.is_scalar) for one in self.outputs]
        if self.is_single:
            return kinds[0]
        return types.Tuple(kinds) if kinds else types.none


def type_of(dtype: str, ndim: int, is_scalar: bool) -> Any:
    """Return Numba's type of a C-contiguous array, or of a scalar."""
    element = from_dtype(np.dtype(dtype))
    return element if is_scalar else types.Array(element, ndim, "C")
