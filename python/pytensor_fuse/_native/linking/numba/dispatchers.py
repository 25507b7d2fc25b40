"""Machine code as a dispatcher of Numba: what other packages take from PyTensor's functions.

Numba compiles a wrapper for those who call it from code of theirs. From Python, nothing is
compiled: the machine code is there already, and the bindings call it sooner than Numba would.

This and what it imports load Numba; it is imported when somebody first asks for a dispatcher.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core.registry import CPUDispatcher
from pytensor.scalar.basic import ScalarType

from pytensor_fuse._core import NativeFunction
from pytensor_fuse._native.linking.addresses import new_place
from pytensor_fuse._native.linking.lifetimes import keep_with
from pytensor_fuse._native.linking.numba.bodies import body_of
from pytensor_fuse._native.linking.numba.interface import Given, Interface, Returned
from pytensor_fuse._native.linking.numba.places import POINTER, code_and_constants
from pytensor_fuse._native.linking.thunks import (
    failing,
    overwritten_inputs,
    specified_inputs,
    specified_outputs,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor.graph.basic import Variable
    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._native.runtime.compiling import Compiled


class NativeDispatcher(CPUDispatcher):
    """A dispatcher whose Python callers go round Numba.

    Parameters
    ----------
    body
        What Numba compiles for others.
    native
        What Python calls.
    dtypes
        Those of the inputs.
    made_by
        The function that makes it anew, and its arguments: what is pickled.
    """

    def __init__(
        self,
        body: Any,
        native: NativeFunction,
        dtypes: Sequence[str],
        made_by: tuple[Callable[..., NativeDispatcher], tuple[Any, ...]],
    ) -> None:
        # Only Python would need the wrappers for Python; they take most of the time to compile.
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
            # Numba takes what can be converted.
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
        # As copies of Numba's dispatchers: nothing in them changes what they compute.
        return self

    def __deepcopy__(self, memo: Any) -> NativeDispatcher:
        return self


def interface_of(
    compiled: Compiled,
    inputs: Sequence[Variable[Any, Any]],
    outputs: Sequence[Variable[Any, Any]],
    *,
    is_single: bool = False,
) -> Interface:
    """Return what a compiled graph takes and gives.

    Parameters
    ----------
    compiled
        The graph's code.
    inputs, outputs
        Its variables.
    is_single
        Whether the only output is returned itself.
    """
    program = compiled.program
    overwritten = overwritten_inputs(program)
    given = [
        Given(dtype, shape, isinstance(variable.type, ScalarType), position in overwritten)
        for position, (variable, (dtype, shape)) in enumerate(
            zip(inputs, specified_inputs(inputs), strict=True)
        )
    ]
    returned = [
        Returned(
            "fresh" if result.kind == "buffer" else result.kind,
            result.number,
            variable.type.dtype,
            variable.type.ndim,
            isinstance(variable.type, ScalarType),
        )
        for result, variable in zip(program.results, outputs, strict=True)
    ]
    total = 0 if compiled.placement.total is None else compiled.placement.total
    n_scratch = total if isinstance(total, int) else None
    return Interface(tuple(given), tuple(returned), tuple(program.failures), is_single, n_scratch)


def dispatcher_of(
    compiled: Compiled,
    fgraph: FunctionGraph,
    made_by: tuple[Callable[..., NativeDispatcher], tuple[Any, ...]],
) -> NativeDispatcher:
    """Return a dispatcher of Numba that calls the code of a graph.

    Parameters
    ----------
    compiled
        The graph's code.
    fgraph
        The graph.
    made_by
        A function, and its arguments, that makes an equal dispatcher in another process.

    Returns
    -------
    NativeDispatcher
        It takes an argument for each input, and returns a tuple of the outputs, as what PyTensor's
        linker makes; none, if there are no outputs.
    """
    program, place = compiled.program, new_place(compiled)
    # Numba never forgets what writes a call: that must not hold the place.
    table = place.table

    def locate(context: Any, builder: Any) -> tuple[Any, Any]:
        # Numba does not put on disk what has such addresses in it.
        found = context.add_dynamic_addr(builder, table, info="machine code")
        return code_and_constants(context, builder, builder.bitcast(found, POINTER.as_pointer()))

    body = body_of(interface_of(compiled, fgraph.inputs, fgraph.outputs), locate)
    native = NativeFunction(
        compiled.code.address,
        compiled.code,
        specified_inputs(fgraph.inputs),
        compiled.constants,
        specified_outputs(program, fgraph.outputs),
        failing(program),
        overwritten_inputs(program),
    )
    made = NativeDispatcher(body, native, [one.type.dtype for one in fgraph.inputs], made_by)
    keep_with(made, [place])
    return made
