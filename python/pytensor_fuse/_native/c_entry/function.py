"""Checks and descriptions of a compiled function before C calls it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np
from pytensor.compile.executor import Function

from pytensor_fuse._errors import NativeLinkError
from pytensor_fuse._native.emission.c.function import CInterface
from pytensor_fuse._native.linking.graphs import late_refusals, refusals
from pytensor_fuse._native.linking.thunks import signature_of
from pytensor_fuse._native.linking.whole import native_thunk_of
from pytensor_fuse._native.lowering.parts import is_array
from pytensor_fuse._native.lowering.registry import RuleError
from pytensor_fuse._pytensor.graphs.run_order import run_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.lowering.types import Array, Variable
    from pytensor_fuse._native.runtime.compiling import Compiled

SharedVariables = Literal["values", "inputs"]

# C types of elements by dtype, where they differ from ``<dtype>_t``.
_C_TYPES: Final = {"float64": "double", "float32": "float", "bool": "uint8_t"}


class CArray(NamedTuple):
    """An input or an output of a C function.

    Attributes
    ----------
    name
        The variable's name in the graph; None if it has no name.
    dtype
        The dtype of its elements, in NumPy's notation.
    shape
        The length of each axis; None if it is known only at the call.
    """

    name: str | None
    dtype: str
    shape: tuple[int | None, ...]

    @property
    def c_type(self) -> str:
        """The C type of the elements."""
        return _C_TYPES.get(self.dtype, f"{self.dtype}_t")

    def __str__(self) -> str:
        lengths = ", ".join(["?" if one is None else str(one) for one in self.shape])
        name = "" if self.name is None else f"{self.name}: "
        return f"{name}{self.dtype}[{lengths}]"


class NativeGraph(NamedTuple):
    """A compiled function's machine code, with descriptions of its inputs and outputs.

    Attributes
    ----------
    compiled
        The machine code.
    interface
        All inputs and outputs of the C function.
    inputs
        The arguments of a call.
    outputs
        The results of a call.
    bound
        The values of shared variables that are bound to the last inputs of the machine code.
    is_single
        Whether the compiled function returns its output itself instead of a list.
    """

    compiled: Compiled
    interface: CInterface
    inputs: tuple[CArray, ...]
    outputs: tuple[CArray, ...]
    bound: tuple[Array, ...]
    is_single: bool


def native_graph(who: str, compiled: object, shared: SharedVariables) -> NativeGraph:
    """Return the machine code of a compiled function, with descriptions of inputs and outputs.

    Parameters
    ----------
    who
        The name of the public function that was called, for messages.
    compiled
        The argument of that function.
    shared
        ``values`` to bind the shared variables to copies of their values, ``inputs`` to turn them
        into inputs after the other ones.

    Raises
    ------
    TypeError
        If the argument is not a compiled function.
    ValueError
        If the function updates shared variables, or ``shared`` has another value.
    NativeLinkError
        If the function is not machine code as a whole.
    """
    if shared not in ("values", "inputs"):
        raise ValueError(f"shared must be 'values' or 'inputs', not {shared!r}")
    function = _function(who, compiled)
    thunk = native_thunk_of(function)
    if thunk is None:
        raise NativeLinkError(_why_not_native(who, function))
    fgraph = function.maker.fgraph
    others = [str(one) for one in (*fgraph.inputs, *fgraph.outputs) if not is_array(one)]
    if others:
        raise NativeLinkError(
            f"{who} takes a function of arrays, and C knows no {', '.join(others)}: give it arrays "
            "alone"
        )
    specs: Sequence[Any] = function.maker.expanded_inputs
    updated = [str(one.variable) for one in specs if one.update is not None]
    if updated:
        raise ValueError(
            f"{who} takes a function without updates, and this one updates {', '.join(updated)}: "
            "return the new values as outputs, and give the old ones as inputs"
        )
    containers: Sequence[Any] = function.input_storage
    n_given = sum(not one.implicit for one in specs)
    if shared == "values":
        if any(one.implicit for one in specs[:n_given]):
            raise AssertionError("shared variables come behind the other inputs")
    else:
        n_given = len(specs)
    inputs = tuple(map(_array, fgraph.inputs))
    bound = tuple(
        np.array(container.storage[0], about.dtype, order="C")
        for container, about in zip(containers[n_given:], inputs[n_given:], strict=True)
    )
    outputs = tuple(map(_array, fgraph.outputs))
    given, returned = signature_of(thunk.compiled.program, fgraph.inputs, fgraph.outputs)
    # The lengths of bound arrays are known.
    known = [
        one._replace(lengths=array.shape) for one, array in zip(given[n_given:], bound, strict=True)
    ]
    interface = CInterface((*given[:n_given], *known), returned, len(bound))
    return NativeGraph(
        thunk.compiled, interface, inputs[:n_given], outputs, bound, bool(function.unpack_single)
    )


def _function(who: str, compiled: object) -> Function:
    # PyMC's point functions hold a compiled function, and so do its functions of values and
    # gradients.
    for name in ("f", "_pytensor_function"):
        asked = getattr(compiled, name, None)
        if isinstance(asked, Function) and not isinstance(compiled, Function):
            compiled = asked
    if not isinstance(compiled, Function):
        raise TypeError(
            f"{who} takes a compiled function, what pytensor.function returns, not an object of "
            f"type {type(compiled).__name__}"
        )
    return compiled


def _why_not_native(who: str, function: Function) -> str:
    fgraph, order = function.maker.fgraph, run_order(function)[0]
    try:
        found = refusals(fgraph, order) or late_refusals(fgraph, order)
        lines = [f"  {one.culprit}: {one.reason}" for one in found]
    except RuleError as error:
        lines = [f"  {error}"]
    if not lines:
        linker = type(function.maker.linker).__name__
        return (
            f"{who} takes a function that is machine code as a whole, and this one was compiled by "
            f"{linker}: compile it in mode NATIVE"
        )
    told = "\n".join(lines)
    return f"{who} takes a function that is machine code as a whole; these parts are not:\n{told}"


def _array(variable: Variable) -> CArray:
    kind: Any = variable.type
    return CArray(variable.name, str(kind.dtype), tuple(getattr(kind, "shape", ())))
