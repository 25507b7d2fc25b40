"""C functions around machine code, loaded into this process."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from pytensor_fuse._native.emission.c.function import N_ADDRESSES, TABLE
from pytensor_fuse._native.runtime.constants import table_of
from pytensor_fuse._native.runtime.objects import own_code_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from pytensor_fuse._native.runtime.compiling import Compiled


class CCode:
    """A C function that calls machine code; the object must outlive every call.

    It keeps the machine code, its constants and the bound inputs alive. It is immutable, so threads
    may call it concurrently, with or without the interpreter lock.

    Parameters
    ----------
    text
        A module by `emission.c_function`, whose table is unbound.
    function
        The name of the function in the module.
    compiled
        The machine code.
    bound
        The arrays that are bound to the last inputs, C-contiguous and aligned.

    Attributes
    ----------
    address
        The address of the function.
    """

    def __init__(
        self,
        text: str,
        function: str,
        compiled: Compiled,
        bound: Sequence[np.ndarray[Any, Any]] = (),
    ) -> None:
        self._kept = compiled.code, tuple(compiled.constants), tuple(bound)
        self._tables = [table_of(compiled.constants), table_of(bound)]
        self._code = own_code_of(text, function)
        place = self._code.address_of_data(TABLE)
        table = (ctypes.c_void_p * N_ADDRESSES).from_address(place)
        table[1], table[2] = (ctypes.addressof(one) for one in self._tables)
        table[0] = compiled.code.address
        self.address = self._code.address
