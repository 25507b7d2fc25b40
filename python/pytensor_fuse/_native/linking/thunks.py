"""Thunks of machine code, which PyTensor's functions call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.link.utils import raise_with_op
from pytensor.scalar.basic import ScalarType

from pytensor_fuse._core import NativeFunction
from pytensor_fuse._native.emission.layout import Argument, Returned
from pytensor_fuse._native.program.failures import raised_by

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._native.lowering.types import Node, Variable, Variables
    from pytensor_fuse._native.program.model import Program
    from pytensor_fuse._native.runtime.compiling import Compiled


class NativeThunk(NativeFunction):
    """The code of one of PyTensor's functions, with the interface of a thunk.

    Attributes
    ----------
    compiled
        The compiled graph.
    fgraph
        The graph.
    inputs, outputs
        The storage of the inputs and outputs.
    lazy
        False: all inputs are read at once.
    allow_gc
        Whether PyTensor's function drops arguments and results after each call.
    storage_map
        The storage of each variable.
    n_arguments
        The number of arguments of PyTensor's function, if `calls` may take its fast path; -1 if it
        may not, None before the first call.
    """

    n_arguments: int | None
    compiled: Compiled
    fgraph: FunctionGraph
    inputs: list[list[Any]]
    outputs: list[list[Any]]
    lazy = False
    allow_gc: bool
    storage_map: dict[Variable, list[Any]]
    _blamed: Node | None
    _make_jit_fn: Callable[[], Any]
    _jit_fn: Any

    def belong_to(
        self,
        compiled: Compiled,
        fgraph: FunctionGraph,
        storage_map: dict[Variable, list[Any]],
        make_jit_fn: Callable[[], Any],
    ) -> None:
        """Store the arguments of `native_thunk`."""
        self.compiled = compiled
        self.fgraph = fgraph
        self.inputs = [storage_map[one] for one in fgraph.inputs]
        self.outputs = [storage_map[one] for one in fgraph.outputs]
        self._blamed = next((one.owner for one in fgraph.outputs if one.owner is not None), None)
        self._make_jit_fn = make_jit_fn
        self._jit_fn = None
        self.n_arguments = None
        self.bind(*self._cells())

    def _cells(self) -> tuple[list[list[Any]], list[list[Any]]]:
        """Return the storage of the code's arguments and results."""
        return self.inputs, self.outputs

    def __call__(self) -> list[Any]:  # type: ignore[override] # PyO3 says nothing of arguments
        """Run on the contents of the inputs' storage; the results go to that of the outputs."""
        try:
            return super().__call__()
        except Exception:
            self.raise_with_op()
            raise

    def raise_with_op(self) -> None:
        """Raise the current exception again, with a note on the graph that failed.

        Raises
        ------
        Exception
            In the same form as from PyTensor's own thunks.
        """
        if self._blamed is not None:
            raise_with_op(self.fgraph, self._blamed, self)

    @property
    def jit_fn(self) -> Any:
        """A function for Numba with an argument for each input, which returns a tuple."""
        if self._jit_fn is None:
            self._jit_fn = self._make_jit_fn()
        return self._jit_fn

    @jit_fn.setter
    def jit_fn(self, value: Any) -> None:
        # PyTensor assigns the linker's result, which is None: the function is compiled on demand.
        if value is not None:
            self._jit_fn = value


def specified_inputs(
    inputs: Variables, copies: Sequence[int] = ()
) -> list[tuple[str, tuple[int, ...]]]:
    """Return the inputs' description for `NativeFunction`: dtypes, and lengths with -1 for unknown.

    Parameters
    ----------
    inputs
        The inputs of the graph.
    copies
        The positions of the inputs of which the code receives copies as well.
    """
    # A local import: functions of other linkers, whose calls pass here too, do not need the rules.
    from pytensor_fuse._native.lowering.parts import input_parts

    return [
        (part.dtype, tuple([-1 if one is None else one for one in part.shape]))
        for _, part in input_parts(inputs, copies)
    ]


def specified_outputs(program: Program, outputs: Variables) -> list[tuple[Any, ...]]:
    """Return the outputs' description for `NativeFunction`."""
    from pytensor_fuse._native.lowering.parts import type_parts

    parts = [part for variable in outputs for part in type_parts(variable.type) or ()]
    return [
        ("fresh", part.dtype, len(part.shape)) if result.kind == "buffer" else tuple(result)
        for result, part in zip(program.results, parts, strict=True)
    ]


def overwritten_inputs(program: Program) -> list[int]:
    """Return the positions of the inputs that a program may write to."""
    return [
        about.position for about in program.buffers if about.kind == "input" and not about.is_once
    ]


def signature_of(
    program: Program, inputs: Variables, outputs: Variables
) -> tuple[tuple[Argument, ...], tuple[Returned, ...]]:
    """Return the description of arguments and results that are arrays or scalars."""
    overwritten = overwritten_inputs(program)
    given = [
        Argument(dtype, lengths, position in overwritten, isinstance(variable.type, ScalarType))
        for position, (variable, (dtype, lengths)) in enumerate(
            zip(inputs, specified_inputs(inputs), strict=True)
        )
    ]
    returned = [
        Returned(
            variable.type.dtype,
            variable.type.ndim,
            result.kind,
            0 if result.kind == "buffer" else result.number,
            isinstance(variable.type, ScalarType),
        )
        for result, variable in zip(program.results, outputs, strict=True)
    ]
    return tuple(given), tuple(returned)


def failing(program: Program) -> Callable[[int, tuple[int, ...]], BaseException]:
    """Return a function that makes a program's exceptions from a failure's number and details."""
    # The closure must not keep the program alive.
    failures = tuple(program.failures)

    return lambda number, details: raised_by(failures[number - 1], details)


def code_arguments(compiled: Compiled, inputs: Variables, outputs: Variables) -> tuple[Any, ...]:
    """Return the arguments from which `NativeFunction` makes a callable of a compiled graph."""
    program = compiled.program
    return (
        compiled.code.address,
        compiled.code,
        specified_inputs(inputs, compiled.copies),
        compiled.constants,
        specified_outputs(program, outputs),
        failing(program),
        overwritten_inputs(program),
    )


def native_thunk(
    compiled: Compiled,
    fgraph: FunctionGraph,
    storage_map: dict[Variable, list[Any]],
    make_jit_fn: Callable[[], Any],
    kind: type[NativeThunk] = NativeThunk,
) -> NativeThunk:
    """Return the thunk of a compiled graph.

    Parameters
    ----------
    compiled
        The graph's code.
    fgraph
        The graph.
    storage_map
        The storage of its variables.
    make_jit_fn
        A function that makes the function for Numba, called on the first request.
    kind
        The class of the thunk.
    """
    thunk = kind(*code_arguments(compiled, fgraph.inputs, fgraph.outputs))
    thunk.belong_to(compiled, fgraph, storage_map, make_jit_fn)
    return thunk
