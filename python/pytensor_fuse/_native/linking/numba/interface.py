"""Interface of a function of machine code: inputs, outputs and failures, for Numba."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import from_dtype, types

if TYPE_CHECKING:
    from pytensor_fuse._native.emission.layout import Argument, Returned
    from pytensor_fuse._native.program.model import Failure


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

    inputs: tuple[Argument, ...]
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
