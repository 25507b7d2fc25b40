"""Arguments and results that are not arrays: machine code works on their parts.

A separate thunk class splits the arguments before each call and assembles the results. A generator
from which a call drew is returned itself, or its copy if draws were made from that.

NumPy draws under the lock of a generator, without the interpreter lock. Machine code takes the
generator's lock as well, since a thread within NumPy may be using the same generator.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from pytensor.tensor.random.type import RandomGeneratorType
from pytensor.tensor.random.utils import custom_rng_deepcopy

from pytensor_fuse._native.linking.thunks import NativeThunk
from pytensor_fuse._native.lowering.parts import is_array, type_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._native.lowering.types import Variable
    from pytensor_fuse._native.program.model import Result

Array = np.ndarray[Any, Any]


class Passing(NamedTuple):
    """The way in which values of a type are passed to machine code and returned by it.

    Attributes
    ----------
    apart
        Takes an argument and returns an array for each of its parts.
    together
        Takes the type and the arrays of a result and returns it; None if results are always
        arguments, or copies of them.
    copy
        Returns a copy of an argument.
    lock
        Returns the lock of an argument, which is held during a call; None if the type has none.
    """

    apart: Callable[[Any], Sequence[Array]]
    together: Callable[[Any, Sequence[Array]], Any] | None
    copy: Callable[[Any], Any]
    lock: Callable[[Any], AbstractContextManager[Any]] | None = None


def _address(generator: np.random.Generator) -> Sequence[Array]:
    return [np.array([generator.bit_generator.ctypes.bit_generator.value], np.uint64)]


def _lock(generator: np.random.Generator) -> AbstractContextManager[Any]:
    lock: AbstractContextManager[Any] = generator.bit_generator.lock
    return lock


PASSING: Final[dict[type, Passing]] = {
    RandomGeneratorType: Passing(_address, None, custom_rng_deepcopy, _lock)
}


class _Argument(NamedTuple):
    """An argument that is split into parts: its source, method and destination."""

    cell: list[Any]
    passing: Passing
    is_copy: bool
    parts: list[list[Any]]


class _Returned(NamedTuple):
    """A result that is assembled from parts: its destination, method and source.

    Attributes
    ----------
    kind
        The type of the result.
    argument
        The number of the split argument that it is identical to; None if it is a new value.
    """

    cell: list[Any]
    passing: Passing
    kind: Any
    argument: int | None
    parts: list[list[Any]]


class ThunkOfParts(NativeThunk):
    """The code of a function with arguments or results that are not arrays."""

    _taken: list[_Argument]
    _returned: list[_Returned]
    _parts: list[list[Any]]
    _lockable: list[tuple[int, Callable[[Any], AbstractContextManager[Any]]]]

    def _cells(self) -> tuple[list[list[Any]], list[list[Any]]]:
        graph, results = self.fgraph, iter(self.compiled.program.results)
        self._taken, self._returned = [], []
        # The number of the split argument that each input of the machine code belongs to.
        owners: dict[int, int] = {}
        given: list[list[Any]] = []
        positions = [*range(len(graph.inputs)), *self.compiled.copies]
        for number, position in enumerate(positions):
            variable, cell = graph.inputs[position], self.inputs[position]
            if is_array(variable):
                given.append(cell)
                continue
            parts = _new_cells(variable)
            owners.update(
                dict.fromkeys(range(len(given), len(given) + len(parts)), len(self._taken))
            )
            is_copy = number >= len(graph.inputs)
            self._taken.append(_Argument(cell, PASSING[type(variable.type)], is_copy, parts))
            given += parts
        made: list[list[Any]] = []
        for variable, cell in zip(graph.outputs, self.outputs, strict=True):
            if is_array(variable):
                next(results)
                made.append(cell)
                continue
            parts = _new_cells(variable)
            argument = _argument([next(results) for _ in parts], owners)
            passing = PASSING[type(variable.type)]
            self._returned.append(_Returned(cell, passing, variable.type, argument, parts))
            made += parts
        self._lockable = [
            (place, one.passing.lock)
            for place, one in enumerate(self._taken)
            # Nobody else has access to a copy.
            if one.passing.lock is not None and not one.is_copy
        ]
        self._parts = [part for one in self._taken for part in one.parts]
        self._parts += [part for one in self._returned for part in one.parts]
        return given, made

    def __call__(self) -> list[Any]:  # type: ignore[override] # as NativeThunk's
        """Run on the contents of the inputs' storage; the results go to that of the outputs."""
        given = [one.cell[0] for one in self._taken]
        if len(self._lockable) == 1:
            # The exit stack for several locks takes as long as a short call.
            [(place, lock_of)] = self._lockable
            with lock_of(given[place]):
                return self._run(given)
        with ExitStack() as held:
            # Each lock once, in one global order, so that concurrent calls cannot deadlock.
            locks = {id(lock): lock for lock in [of(given[place]) for place, of in self._lockable]}
            for key in sorted(locks):
                held.enter_context(locks[key])
            return self._run(given)

    def _run(self, given: Sequence[Any]) -> list[Any]:
        values = []
        for value, (_, passing, is_copy, parts) in zip(given, self._taken, strict=True):
            own = passing.copy(value) if is_copy else value
            values.append(own)
            for part, array in zip(parts, passing.apart(own), strict=True):
                part[0] = array
        try:
            super().__call__()
            for cell, passing, kind, argument, parts in self._returned:
                if argument is not None:
                    cell[0] = values[argument]
                else:
                    assert passing.together is not None
                    cell[0] = passing.together(kind, [part[0] for part in parts])
        finally:
            for part in self._parts:
                part[0] = None
        return [cell[0] for cell in self.outputs]


def _new_cells(variable: Variable) -> list[list[Any]]:
    return [[None] for _ in type_parts(variable.type) or ()]


def _argument(results: Sequence[Result], owners: dict[int, int]) -> int | None:
    """Return the number of the argument to which all parts of a result belong, or None."""
    found = {owners.get(one.number) if one.kind == "input" else None for one in results}
    return found.pop() if len(found) == 1 else None


def numba_function(fgraph: FunctionGraph) -> Any:
    """Return Numba's function for a graph, for callers that pass whole arguments."""
    from pytensor.link.numba.linker import NumbaLinker

    linker = NumbaLinker()
    return linker.jit_compile(linker.fgraph_convert(fgraph, input_storage=None, storage_map=None))
