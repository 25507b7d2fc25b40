"""Interpreter of programs: runs them statement by statement, as the oracle of every later stage.

An action that no valid program takes is an error here: an access out of bounds, or a second write
of an element that is written at most once. An element that was never written is unknown, and so is
each value computed from it. An unknown value is harmless as long as no control flow, index or
length depends on it, because a builder may hoist an operation to where its result is not needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pytensor_fuse._native.program.arithmetic import NUMPY_DTYPES, evaluate
from pytensor_fuse._native.program.external.draws import DRAWS, run_draw
from pytensor_fuse._native.program.external.routines import ROUTINES, run_routine
from pytensor_fuse._native.program.failures import raised_by
from pytensor_fuse._native.program.walking import handlers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.program import model
    from pytensor_fuse._native.program.arithmetic import Scalar
    from pytensor_fuse._native.program.model import BufferId, Program, Statement, Value

Array = np.ndarray[Any, np.dtype[Any]]


class InterpreterError(AssertionError):
    """A program does something that no valid program does."""


def interpret(
    program: Program, inputs: Sequence[Array], constants: Sequence[Array] = ()
) -> list[Array]:
    """Run a program.

    Parameters
    ----------
    program
        The program, which must pass `verify`.
    inputs
        The arrays by position, of the dtypes and lengths that the program declares. Inputs that the
        program writes are overwritten.
    constants
        The constant arrays, likewise.

    Returns
    -------
    list of np.ndarray
        The outputs. An output that is an input, or an earlier output, is the same object.

    Raises
    ------
    InterpreterError
        The program does something invalid, or the arrays differ from its declarations.
    BaseException
        The exception of a failed check.
    """
    return _Run(program, inputs, constants).outputs()


class _Unknown:
    """The value of an element that was never written."""


_UNKNOWN: Final = _Unknown()


class _Memory:
    """A buffer while a program runs.

    Attributes
    ----------
    array
        Its elements.
    is_written, is_known
        For each element, whether it has been written, and whether with a known value.
    """

    __slots__ = ("array", "is_known", "is_written")

    def __init__(self, array: Array, *, is_given: bool) -> None:
        self.array = array
        self.is_written = np.full(array.shape, is_given)
        self.is_known = self.is_written.copy()


class _Run:
    def __init__(
        self, program: Program, inputs: Sequence[Array], constants: Sequence[Array]
    ) -> None:
        self._program = program
        self._inputs = inputs
        self._values: list[Scalar | _Unknown | None] = [None] * len(program.dtypes)
        self._memory: list[_Memory | None] = [None] * len(program.buffers)
        self._runs = handlers(self)
        for value, number in program.constants.items():
            self._values[value] = NUMPY_DTYPES[program.dtypes[value]](number)
        given = {"input": inputs, "constant": constants}
        for buffer, about in enumerate(program.buffers):
            if about.kind in given:
                self._give(buffer, about, given[about.kind])
        for value, (buffer, axis) in program.lengths.items():
            self._values[value] = np.int64(self._of(buffer).array.shape[axis])
        for buffer, about in enumerate(program.buffers):
            if about.kind in given:
                shape, lengths = self._of(buffer).array.shape, self._lengths(about)
                if shape != lengths:
                    raise InterpreterError(f"@{buffer} is of shape {lengths}, and given as {shape}")

    def outputs(self) -> list[Array]:
        """Run the body and return the outputs."""
        self._block(self._program.body)
        outputs: list[Array] = []
        for kind, number in self._program.results:
            if kind == "buffer":
                outputs.append(self._of(number).array)
            elif kind == "input":
                outputs.append(self._inputs[number])
            else:
                outputs.append(outputs[number])
        return outputs

    # Buffers

    def _give(self, buffer: BufferId, about: model.Buffer, arrays: Sequence[Array]) -> None:
        if about.position >= len(arrays):
            raise InterpreterError(f"{about.kind} {about.position} is not given")
        array = arrays[about.position]
        if array.dtype != NUMPY_DTYPES[about.dtype]:
            raise InterpreterError(f"@{buffer} is {about.dtype}, and given as {array.dtype}")
        if array.ndim != len(about.lengths):
            raise InterpreterError(f"@{buffer} is given with {array.ndim} axes")
        self._memory[buffer] = _Memory(array, is_given=True)

    def _lengths(self, about: model.Buffer) -> tuple[int, ...]:
        return tuple([self._integer(length) for length in about.lengths])

    def _new_memory(self, buffer: BufferId) -> _Memory:
        about = self._program.buffers[buffer]
        lengths = self._lengths(about)
        if any(length < 0 for length in lengths):
            raise InterpreterError(f"@{buffer} is of shape {lengths}")
        # Fill with conspicuous values, so that a read of an unwritten element shows.
        odd = np.nan if about.dtype[0] == "f" else 99
        array = np.full(lengths, odd, NUMPY_DTYPES[about.dtype])
        memory = self._memory[buffer] = _Memory(array, is_given=False)
        return memory

    def _of(self, buffer: BufferId) -> _Memory:
        memory = self._memory[buffer]
        # Temporary buffers whose lengths are known at the start need no `Allocate` statement.
        return self._new_memory(buffer) if memory is None else memory

    def _place(self, buffer: BufferId, index: tuple[Value, ...]) -> tuple[_Memory, tuple[int, ...]]:
        """Return the memory of a buffer, and the checked index of an element in it."""
        memory = self._of(buffer)
        place = tuple([self._integer(at) for at in index])
        for at, length in zip(place, memory.array.shape, strict=True):
            if not 0 <= at < length:
                raise InterpreterError(
                    f"@{buffer} is of shape {memory.array.shape}, and accessed at {place}"
                )
        return memory, place

    # Values

    def _value(self, value: Value) -> Scalar | _Unknown:
        found = self._values[value]
        if found is None:
            raise InterpreterError(f"%{value} is used before it is defined")
        return found

    def _integer(self, value: Value) -> int:
        found = self._value(value)
        if isinstance(found, _Unknown):
            raise InterpreterError(f"%{value} controls execution and is unknown")
        return int(found)

    def _evaluated(
        self, name: str, dtype: str, args: Sequence[Scalar | _Unknown]
    ) -> Scalar | _Unknown:
        if name == "select" and not isinstance(args[0], _Unknown):
            return args[1] if args[0] else args[2]
        known = [arg for arg in args if not isinstance(arg, _Unknown)]
        return evaluate(name, dtype, known) if len(known) == len(args) else _UNKNOWN

    # Statements

    def _block(self, block: list[Statement]) -> None:
        for statement in block:
            self._runs[type(statement)](statement)

    def _allocate(self, allocate: model.Allocate) -> None:
        self._new_memory(allocate.buffer)

    def _op(self, op: model.Op) -> None:
        args = [self._value(arg) for arg in op.args]
        self._values[op.out] = self._evaluated(op.name, self._program.dtypes[op.out], args)

    def _check(self, check: model.Check) -> None:
        if not self._integer(check.condition):
            details = [self._integer(detail) for detail in check.details]
            raise raised_by(self._program.failures[check.failure], details)

    def _load(self, load: model.Load) -> None:
        memory, place = self._place(load.buffer, load.index)
        self._values[load.out] = memory.array[place] if memory.is_known[place] else _UNKNOWN

    def _store(self, store: model.Store) -> None:
        memory, place = self._place(store.buffer, store.index)
        about = self._program.buffers[store.buffer]
        value = self._value(store.value)
        if about.is_once and memory.is_written[place]:
            raise InterpreterError(f"@{store.buffer} is once, and written again at {place}")
        if store.combiner:
            before = memory.array[place] if memory.is_known[place] else _UNKNOWN
            value = self._evaluated(store.combiner, about.dtype, [before, value])
        memory.is_written[place] = True
        memory.is_known[place] = not isinstance(value, _Unknown)
        if not isinstance(value, _Unknown):
            memory.array[place] = value

    def _for(self, loop: model.For) -> None:
        dtypes = self._program.dtypes
        totals = [self._value(reduction.initial) for reduction in loop.reductions]
        carried = [self._value(carry.initial) for carry in loop.carries]
        for index in range(self._integer(loop.extent)):
            self._values[loop.index] = np.int64(index)
            for carry, value in zip(loop.carries, carried, strict=True):
                self._values[carry.inner] = value
            self._block(loop.body)
            totals = [
                self._evaluated(one.combiner, dtypes[one.out], [total, self._value(one.term)])
                for one, total in zip(loop.reductions, totals, strict=True)
            ]
            carried = [self._value(carry.following) for carry in loop.carries]
            if loop.until is not None and self._integer(loop.until):
                break
        for reduction, total in zip(loop.reductions, totals, strict=True):
            self._values[reduction.out] = total
        for carry, value in zip(loop.carries, carried, strict=True):
            self._values[carry.out] = value

    def _if(self, branch: model.If) -> None:
        is_then = bool(self._integer(branch.condition))
        self._block(branch.then if is_then else branch.otherwise)
        for choice in branch.choices:
            self._values[choice.out] = self._value(choice.then if is_then else choice.otherwise)

    def _call(self, call: model.Call) -> None:
        routine = ROUTINES[call.name]
        sizes = [self._integer(size) for size in call.sizes]
        arrays = []
        for (buffer, prefix), role in zip(call.operands, routine.operands, strict=True):
            memory = self._of(buffer)
            # With an ellipsis, a single element is a 0-d array, not a scalar.
            at: tuple[Any, ...] = (*[self._integer(one) for one in prefix], ...)
            array, shape = memory.array[at], routine.shape(role, sizes)
            if [one for one in array.shape if one != 1] != [one for one in shape if one != 1]:
                raise InterpreterError(
                    f"@{buffer} is of shape {array.shape} for {role.name} of {call.name}: {shape}"
                )
            if role.is_read and not memory.is_known[at].all():
                raise InterpreterError(
                    f"{call.name} reads elements of @{buffer} that were never written"
                )
            if role.is_written:
                if self._program.buffers[buffer].is_once and memory.is_written[at].any():
                    raise InterpreterError(f"@{buffer} is once, and {call.name} writes it again")
                memory.is_written[at] = memory.is_known[at] = True
            arrays.append(array)
        report = run_routine(routine, sizes, arrays)
        if call.out is not None:
            self._values[call.out] = np.int64(report)

    def _draw(self, draw: model.Draw) -> None:
        args = [self._value(arg) for arg in draw.args]
        known = [arg for arg in args if not isinstance(arg, _Unknown)]
        if len(known) < len(args):
            raise InterpreterError(f"%{draw.out} is drawn with an unknown parameter")
        address = int(self._of(draw.generator).array[0])
        self._values[draw.out] = run_draw(DRAWS[draw.name], address, known)
