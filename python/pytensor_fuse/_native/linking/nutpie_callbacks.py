"""Functions of PyTensor's as the functions of C that nutpie's sampler calls.

Imported when nutpie first compiles a model.
"""

from __future__ import annotations

import ctypes
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from pytensor_fuse._native.emission.c_function import CInput, CInterface, COutput, emit_c_module
from pytensor_fuse._native.emission.nutpie_callbacks import (
    CALLED,
    EXPAND,
    LOGP,
    expand_text,
    logp_text,
)
from pytensor_fuse._native.linking.thunks import NativeThunk, overwritten_inputs
from pytensor_fuse._native.runtime.c_functions import CCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._pytensor.nutpie_models import DataPlace

_POINTER = ctypes.POINTER(ctypes.c_double)


class NutpieCallback:
    """A function of C, in the place of a `numba.core.ccallback.CFunc`.

    Threads may call it at once, without the interpreter's lock. It has to be kept as long as
    anybody does.

    Parameters
    ----------
    text
        The module that it is in.
    name
        Its name.
    arguments
        The types of its arguments.
    thunk
        The thunk of the function whose machine code it calls.
    """

    def __init__(self, text: str, name: str, arguments: Sequence[Any], thunk: NativeThunk) -> None:
        self.__name__ = self.__qualname__ = name
        self._text = text
        self._arguments = tuple(arguments)
        self._code = CCode(text, name, thunk.compiled)

    @property
    def address(self) -> int:
        """Where the function is."""
        return self._code.address

    @property
    def native_name(self) -> str:
        """The function's name in its module."""
        return self.__name__

    @cached_property
    def ctypes(self) -> Any:
        """The function as `ctypes` calls it."""
        return ctypes.CFUNCTYPE(ctypes.c_int64, *self._arguments)(self.address)

    def inspect_llvm(self) -> str:
        """Return LLVM's text of the function; that of the machine code is in `explain_native`."""
        return self._text

    def __repr__(self) -> str:
        return f"<C callback {self.__qualname__!r} of machine code>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a C callback cannot be pickled: its code is in this process alone")


def logp(function: Any, n_dim: int, places: Sequence[DataPlace]) -> NutpieCallback | None:
    """Return the callback that computes the log density and its gradient.

    Parameters
    ----------
    function
        The function of PyTensor's: of the point and shared variables.
    n_dim
        How many numbers a point has.
    places
        Where the data of the shared variables are.

    Returns
    -------
    NutpieCallback or None
        None if the function is not machine code as a whole.
    """
    if not _is_native(function, n_dim, places, output_ndims=(0, 1)):
        return None
    arguments = [ctypes.c_uint64, _POINTER, _POINTER, _POINTER, ctypes.c_void_p]
    return _callback(function.vm, LOGP, logp_text(n_dim, places), arguments)


def expand(
    function: Any, n_dim: int, n_expanded: int, places: Sequence[DataPlace]
) -> NutpieCallback | None:
    """Return the callback that computes all variables of a draw.

    Parameters
    ----------
    function
        The function of PyTensor's: of the point and shared variables.
    n_dim, n_expanded
        How many numbers a point has, and how many all variables have.
    places
        Where the data of the shared variables are.

    Returns
    -------
    NutpieCallback or None
        None if the function is not machine code as a whole.
    """
    if not _is_native(function, n_dim, places, output_ndims=(1,)):
        return None
    arguments = [ctypes.c_uint64, ctypes.c_uint64, _POINTER, _POINTER, ctypes.c_void_p]
    return _callback(function.vm, EXPAND, expand_text(n_dim, n_expanded, places), arguments)


def _is_native(
    function: Any, n_dim: int, places: Sequence[DataPlace], output_ndims: Sequence[int]
) -> bool:
    """Whether a function is machine code that takes a point and data, and gives doubles."""
    thunk = function.vm
    if type(thunk) is not NativeThunk or overwritten_inputs(thunk.compiled.program):
        return False
    point, *data = (one.type for one in thunk.fgraph.inputs)
    results = [one.type for one in thunk.fgraph.outputs]
    return (
        (point.dtype, point.shape) == ("float64", (n_dim,))
        and [(one.dtype, one.ndim) for one in data]
        == [(str(one.data.dtype), one.data.ndim) for one in places]
        and [(one.dtype, one.ndim) for one in results]
        == [("float64", ndim) for ndim in output_ndims]
    )


def _callback(thunk: NativeThunk, name: str, text: str, arguments: list[Any]) -> NutpieCallback:
    fgraph, results = thunk.fgraph, thunk.compiled.program.results
    inputs = [
        CInput(
            np.dtype(one.type.dtype).itemsize,
            tuple([-1 if length is None else length for length in one.type.shape]),
        )
        for one in fgraph.inputs
    ]
    outputs = [
        COutput(8, one.type.ndim, result.kind, result.number)
        for one, result in zip(fgraph.outputs, results, strict=True)
    ]
    module = emit_c_module(CInterface(tuple(inputs), tuple(outputs)), CALLED, functions=[text])
    return NutpieCallback(module, name, arguments, thunk)
