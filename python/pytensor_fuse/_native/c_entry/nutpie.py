"""Callbacks of nutpie's sampler as C functions around PyTensor's machine code.

This module is imported when nutpie first compiles a model.
"""

from __future__ import annotations

import ctypes
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NoReturn

from pytensor_fuse._native.c_entry.function import native_graph
from pytensor_fuse._native.emission.c.function import emit_c_module
from pytensor_fuse._native.emission.c.nutpie_callbacks import (
    CALLED,
    EXPAND,
    LOGP,
    expand_text,
    logp_text,
)
from pytensor_fuse._native.linking.whole import native_thunk_of
from pytensor_fuse._native.runtime.c_functions import CCode
from pytensor_fuse._startup.warning import warn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor_fuse._native.c_entry.function import NativeGraph
    from pytensor_fuse._pytensor.linking.nutpie_models import DataPlace

_POINTER = ctypes.POINTER(ctypes.c_double)

# Faults that have been reported in this process.
_told: set[str] = set()


class NutpieCallback:
    """A C function that replaces a `numba.core.ccallback.CFunc`.

    Threads may call it concurrently, without the interpreter lock. Callers must keep the object
    alive.

    Parameters
    ----------
    graph
        The machine code that the callback calls.
    name
        The name of the callback.
    text
        The LLVM text of the callback.
    arguments
        The `ctypes` types of its arguments.
    """

    def __init__(self, graph: NativeGraph, name: str, text: str, arguments: Sequence[Any]) -> None:
        self.__name__ = self.__qualname__ = name
        self._text = emit_c_module(graph.interface, CALLED, functions=[text])
        self._arguments = tuple(arguments)
        self._code = CCode(self._text, name, graph.compiled)

    @property
    def address(self) -> int:
        """The address of the function."""
        return self._code.address

    @property
    def native_name(self) -> str:
        """The function's name in its module."""
        return self.__name__

    @cached_property
    def ctypes(self) -> Any:
        """The function as a `ctypes` function."""
        made: Any = ctypes.CFUNCTYPE(ctypes.c_int64, *self._arguments)(self.address)
        made.code = self._code
        return made

    def inspect_llvm(self) -> str:
        """Return the LLVM text of the callback; `explain` has that of the machine code."""
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
        PyTensor's function of the point and the shared variables.
    n_dim
        The number of coordinates of a point.
    places
        The locations of the data of the shared variables.

    Returns
    -------
    NutpieCallback or None
        None if the function is not machine code as a whole.
    """
    arguments = [ctypes.c_uint64, _POINTER, _POINTER, _POINTER, ctypes.c_void_p]
    text = partial(logp_text, n_dim, places)
    return _callback(function, n_dim, places, (0, 1), (LOGP, text, arguments))


def expand(
    function: Any, n_dim: int, n_expanded: int, places: Sequence[DataPlace]
) -> NutpieCallback | None:
    """Return the callback that computes all variables of a draw.

    Parameters
    ----------
    function
        PyTensor's function of the point and the shared variables.
    n_dim, n_expanded
        The number of coordinates of a point, and the number of elements of all variables.
    places
        The locations of the data of the shared variables.

    Returns
    -------
    NutpieCallback or None
        None if the function is not machine code as a whole.
    """
    arguments = [ctypes.c_uint64, ctypes.c_uint64, _POINTER, _POINTER, ctypes.c_void_p]
    text = partial(expand_text, n_dim, n_expanded, places)
    return _callback(function, n_dim, places, (1,), (EXPAND, text, arguments))


def _callback(
    function: Any,
    n_dim: int,
    places: Sequence[DataPlace],
    output_ndims: Sequence[int],
    named: tuple[str, Callable[[], str], Sequence[Any]],
) -> NutpieCallback | None:
    """Return a callback with a name, LLVM text and argument types, or None.

    An internal error becomes a warning, since Numba can still compile the function.
    """
    name, text, arguments = named
    try:
        graph = _graph(function, n_dim, places, output_ndims)
        return None if graph is None else NutpieCallback(graph, name, text(), arguments)
    except Exception as error:
        fault = f"{type(error).__name__}: {error}"
        if fault not in _told:
            _told.add(fault)
            warn(
                "pytensor_fuse leaves a callback of nutpie's to Numba that should have become "
                f"machine code: {fault}. Please report it; "
                'pytensor_fuse.disable("nutpie") silences this'
            )
        return None


def _graph(
    function: Any, n_dim: int, places: Sequence[DataPlace], output_ndims: Sequence[int]
) -> NativeGraph | None:
    """Return the machine code of a function from a point and data to float64 results.

    None if the inputs or outputs differ from that, or the function is not machine code as a whole.
    """
    has_updates = any(one.update is not None for one in function.maker.expanded_inputs)
    if has_updates or native_thunk_of(function) is None:
        return None
    graph = native_graph("nutpie.compile_pymc_model", function, "inputs")
    point, *data = graph.inputs
    is_as_expected = (
        (point.dtype, point.shape) == ("float64", (n_dim,))
        and [(one.dtype, len(one.shape)) for one in data]
        == [(str(one.data.dtype), one.data.ndim) for one in places]
        and [(one.dtype, len(one.shape)) for one in graph.outputs]
        == [("float64", ndim) for ndim in output_ndims]
    )
    return graph if is_as_expected else None
