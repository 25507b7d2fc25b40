"""Machine code as a Numba dispatcher, the interface of PyTensor's functions to other packages.

Numba compiles a wrapper for compiled callers. Calls from Python compile nothing: they reach the
machine code through the bindings, faster than through Numba.

This module loads Numba; it is imported with the first request for a dispatcher.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core.registry import CPUDispatcher

from pytensor_fuse._core import NativeFunction
from pytensor_fuse._native.linking.addresses import new_place
from pytensor_fuse._native.linking.lifetimes import keep_with
from pytensor_fuse._native.linking.numba.bodies import body_of
from pytensor_fuse._native.linking.numba.interface import Interface
from pytensor_fuse._native.linking.numba.places import POINTER, code_and_constants
from pytensor_fuse._native.linking.thunks import code_arguments, signature_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._native.lowering.types import Variables
    from pytensor_fuse._native.runtime.compiling import Compiled

    MadeBy = tuple[Callable[..., "NativeDispatcher"], tuple[Any, ...]]


class NativeDispatcher(CPUDispatcher):
    """A dispatcher whose Python callers bypass Numba.

    Parameters
    ----------
    body
        The function that Numba compiles for compiled callers.
    native
        The function for Python callers.
    dtypes
        The dtypes of the inputs.
    made_by
        A function and its arguments that construct an equal dispatcher, for pickling.
    """

    def __init__(
        self, body: Any, native: NativeFunction, dtypes: Sequence[str], made_by: MadeBy
    ) -> None:
        # Only Python callers would need these wrappers, which take most of the compile time.
        options = {"nopython": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        super().__init__(body, targetoptions=options)
        self._native = native
        self._dtypes = tuple(np.dtype(one) for one in dtypes)
        self._made_by = made_by

    def __call__(self, *args: Any) -> tuple[Any, ...] | None:
        """Return the outputs, None if there are none."""
        try:
            outputs = self._native.call(args)
        except TypeError:
            # Numba accepts convertible arguments.
            converted = self._converted(args)
            if converted is None:
                raise
            outputs = self._native.call(converted)
        return tuple(outputs) or None

    def _converted(self, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        if len(args) != len(self._dtypes):
            return None
        arrays = [np.asarray(one) for one in args]
        pairs = list(zip(arrays, self._dtypes, strict=True))
        if all(array.dtype == dtype for array, dtype in pairs):
            return None
        if not all(np.can_cast(array.dtype, dtype, "same_kind") for array, dtype in pairs):
            return None
        return tuple([array.astype(dtype, copy=False) for array, dtype in pairs])

    def __reduce__(self) -> Any:
        return self._made_by

    def __copy__(self) -> NativeDispatcher:
        # Numba's dispatchers return themselves as well: they have no mutable state to copy.
        return self

    def __deepcopy__(self, memo: Any) -> NativeDispatcher:
        return self


def interface_of(
    compiled: Compiled, inputs: Variables, outputs: Variables, *, is_single: bool = False
) -> Interface:
    """Return the interface of a compiled graph.

    Parameters
    ----------
    compiled
        The graph's code.
    inputs, outputs
        Its variables.
    is_single
        Whether the only output is returned without a tuple.
    """
    program = compiled.program
    given, returned = signature_of(program, inputs, outputs)
    total = 0 if compiled.placement.total is None else compiled.placement.total
    n_scratch = total if isinstance(total, int) else None
    return Interface(given, returned, tuple(program.failures), is_single, n_scratch)


def dispatcher_of(compiled: Compiled, fgraph: FunctionGraph, made_by: MadeBy) -> NativeDispatcher:
    """Return a Numba dispatcher that calls the code of a graph.

    Parameters
    ----------
    compiled
        The graph's code.
    fgraph
        The graph.
    made_by
        A function and its arguments that construct an equal dispatcher in another process.

    Returns
    -------
    NativeDispatcher
        It takes an argument for each input, and returns a tuple of the outputs like the function of
        PyTensor's linker, or None if there are no outputs.
    """
    place = new_place(compiled)
    # Numba keeps every closure that emits a call: it must not hold the place.
    table = place.table

    def locate(context: Any, builder: Any) -> tuple[Any, Any]:
        # The dynamic address keeps Numba from caching the function on disk.
        found = context.add_dynamic_addr(builder, table, info="machine code")
        return code_and_constants(context, builder, builder.bitcast(found, POINTER.as_pointer()))

    body = body_of(interface_of(compiled, fgraph.inputs, fgraph.outputs), locate)
    native = NativeFunction(*code_arguments(compiled, fgraph.inputs, fgraph.outputs))
    made = NativeDispatcher(body, native, [one.type.dtype for one in fgraph.inputs], made_by)
    keep_with(made, [place])
    return made
