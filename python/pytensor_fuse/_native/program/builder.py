"""Program builder: emits statements one by one, and shares and hoists work on the way.

Equal operations on equal values are one value (global value numbering within the open blocks), and
an operation goes to the outermost block in which its arguments are defined: operations are total,
so running one where its result is not needed is harmless. A load of an element that was stored or
loaded before reuses the value of that statement. A pass that rebuilds a program through a builder
thereby gets common subexpression elimination, loop-invariant code motion and store-to-load
forwarding.
"""

from __future__ import annotations

import struct
from contextlib import contextmanager
from ctypes import c_float
from typing import TYPE_CHECKING, Any

from pytensor_fuse._native.program import model
from pytensor_fuse._native.program.allocations import add_allocations
from pytensor_fuse._native.program.blocks import Block, Loop
from pytensor_fuse._native.program.external.draws import DRAWS
from pytensor_fuse._native.program.external.routines import ROUTINES
from pytensor_fuse._native.program.folding import fold
from pytensor_fuse._native.program.model import (
    BufferId,
    BufferKind,
    Operand,
    Program,
    Statement,
    Value,
)
from pytensor_fuse._native.program.operations import result_dtype

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


class Builder:
    """Writes one program.

    Parameters
    ----------
    reassociates
        Whether sums and products of floats may be taken in any order.
    calls_libm
        Whether mathematical functions are those that Numba's back end calls, to the last bit.
    failures
        Failures that the program starts with.
    """

    def __init__(
        self,
        *,
        reassociates: bool = False,
        calls_libm: bool = False,
        failures: Iterable[model.Failure] = (),
    ) -> None:
        self.program = Program(reassociates=reassociates, calls_libm=calls_libm)
        self.program.failures += failures
        # The number of each failure; equal failures have that of the first.
        self._failures: dict[model.Failure, int] = {}
        for number, failure in enumerate(self.program.failures):
            self._failures.setdefault(failure, number)
        self._dtypes = self.program.dtypes
        self._constants: dict[tuple[str, object], Value] = {}
        self._lengths: dict[tuple[BufferId, int], Value] = {}
        root = Block(0)
        self._blocks = [root]
        self._homes: list[Block] = []
        self._known: dict[tuple[Any, ...], tuple[Value, Block]] = {}
        # The block in which each condition was checked.
        self._checked: dict[Value, Block] = {}
        # The contents of a buffer that is written more than once are known until the next write.
        self._versions: dict[BufferId, int] = {}
        self._is_guarding = False
        # Buffers to allocate before their first use, with the latest position for that.
        self._unplaced: dict[BufferId, int] = {}
        self.program.body = root.statements

    @property
    def n_open_blocks(self) -> int:
        """The number of open blocks, including the outermost one."""
        return len(self._blocks)

    # Values

    def _new(self, dtype: str, home: Block) -> Value:
        self._dtypes.append(dtype)
        self._homes.append(home)
        return len(self._dtypes) - 1

    def dtype(self, value: Value) -> str:
        """Return the dtype of a value."""
        return self._dtypes[value]

    def depth(self, value: Value) -> int:
        """Return the nesting depth of the block that defines a value."""
        return self._homes[value].depth

    def constant(self, dtype: str, number: bool | int | float) -> Value:
        """Return the value of a literal."""
        is_float = dtype[0] == "f"
        if dtype == "f32":
            # Round now, so that folding computes with the number that the program will have.
            number = c_float(number).value
        # All bits count: 0.0 and -0.0 are equal, and NaN is not equal to itself.
        key = (dtype, struct.pack("<d", number) if is_float else number)
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = self._new(dtype, self._blocks[0])
            self.program.constants[found] = (
                float(number) if is_float else bool(number) if dtype == "bool" else int(number)
            )
        return found

    def index(self, number: int) -> Value:
        """Return the value of an ``i64`` literal."""
        return self.constant("i64", number)

    def number(self, value: Value) -> bool | int | float | None:
        """Return the number of a literal; None for any other value."""
        return self.program.constants.get(value)

    def is_visible(self, value: Value) -> bool:
        """Whether the block that defines a value is still open."""
        return self._homes[value].is_open

    def length(self, buffer: BufferId, axis: int) -> Value:
        """Return the length of an axis of a caller's buffer, if it is unknown until the call."""
        key = buffer, axis
        found = self._lengths.get(key)
        if found is None:
            found = self._lengths[key] = self._new("i64", self._blocks[0])
            self.program.lengths[found] = key
        return found

    def op(self, name: str, *args: Value) -> Value:
        """Return the value of an operation, all of whose arguments have one dtype."""
        dtype = result_dtype(name, tuple([self._dtypes[arg] for arg in args]))
        return self.operation(name, dtype, args)

    def cast(self, value: Value, dtype: str) -> Value:
        """Return a value converted to another dtype, as C converts."""
        return value if self._dtypes[value] == dtype else self.operation("cast", dtype, (value,))

    def operation(self, name: str, dtype: str, args: tuple[Value, ...]) -> Value:
        """Return the value of an operation whose result has a given dtype."""
        key = (name, dtype, args)
        found = self._known.get(key)
        if found is not None and found[1].is_open:
            return found[0]
        folded = fold(self, name, dtype, args)
        if folded is not None:
            return folded
        home = self._blocks[0]
        for arg in args:
            at = self._homes[arg]
            if at.depth > home.depth:
                home = at
        out = self._new(dtype, home)
        home.statements.append(model.Op(out, name, args))
        self._known[key] = out, home
        return out

    # Buffers

    def buffer(
        self,
        kind: BufferKind,
        position: int,
        dtype: str,
        lengths: Sequence[Value],
        *,
        is_once: bool = True,
    ) -> BufferId:
        """Add a buffer."""
        self.program.buffers.append(
            model.Buffer(kind, position, dtype, tuple(lengths), is_once=is_once)
        )
        return len(self.program.buffers) - 1

    def given(
        self, kind: BufferKind, position: int, dtype: str, shape: Sequence[int | None]
    ) -> BufferId:
        """Add a buffer that the caller passes; a length of None is unknown until the call."""
        number = self.buffer(kind, position, dtype, ())
        self.program.buffers[number].lengths = tuple(
            [
                self.length(number, axis) if length is None else self.index(length)
                for axis, length in enumerate(shape)
            ]
        )
        return number

    def allocate(self, buffer: BufferId) -> None:
        """Allocate a buffer here."""
        self._blocks[-1].statements.append(model.Allocate(buffer))

    def allocate_around(self, buffer: BufferId) -> None:
        """Allocate a buffer before the innermost open block."""
        self._blocks[-2].statements.append(model.Allocate(buffer))

    def allocate_before_use(self, buffer: BufferId) -> None:
        """Request an allocation before the first access, and after the checks that precede it.

        The buffer is allocated here at the latest. Computed lengths may be negative, or too large,
        until a check has passed. `place_allocations` writes the statement.

        Raises
        ------
        ValueError
            If a length is defined in an inner block.
        """
        if any(self._homes[length].depth for length in self.program.buffers[buffer].lengths):
            raise ValueError("an output has lengths that are known in an inner block only")
        self._unplaced[buffer] = len(self._blocks[0].statements)

    def place_allocations(self) -> None:
        """Write the allocations that `allocate_before_use` has requested, in one walk."""
        add_allocations(self._blocks[0].statements, self._unplaced)
        self._unplaced = {}

    def _key(self, buffer: BufferId, index: tuple[Value, ...]) -> tuple[Any, ...]:
        if self.program.buffers[buffer].is_once:
            return "load", buffer, index
        return "load", buffer, index, self._versions.get(buffer, 0), id(self._blocks[-1])

    def load(self, buffer: BufferId, index: Sequence[Value], *, is_guarded: bool = False) -> Value:
        """Return an element of a buffer."""
        index = tuple(index)
        key = self._key(buffer, index)
        found = self._known.get(key)
        if found is not None and found[1].is_open:
            return found[0]
        is_guarded = is_guarded or self._is_guarding
        home = self._home_of_load(buffer, index, is_guarded)
        out = self._new(self.program.buffers[buffer].dtype, home)
        home.statements.append(model.Load(out, buffer, index, is_guarded=is_guarded))
        self._known[key] = out, home
        return out

    @contextmanager
    def guarding(self) -> Iterator[None]:
        """Mark all loads in this context as guarded: in bounds only after the preceding checks."""
        outer, self._is_guarding = self._is_guarding, True
        try:
            yield
        finally:
            self._is_guarding = outer

    def _home_of_load(self, buffer: BufferId, index: tuple[Value, ...], is_guarded: bool) -> Block:
        """Return the outermost block in which a load is in bounds and reads the same element."""
        here = self._blocks[-1]
        about = self.program.buffers[buffer]
        if is_guarded or not about.is_once:
            return here
        constants = self.program.constants
        for at, length in zip(index, about.lengths, strict=True):
            number, limit = constants.get(at), constants.get(length)
            if number is None or limit is None or not 0 <= number < limit:
                return here
        home = self._blocks[0]
        for block in self._blocks[1:]:
            if buffer in block.written:
                home = block
        return home

    def store(
        self,
        buffer: BufferId,
        index: Sequence[Value],
        value: Value,
        combiner: str = "",
        *,
        is_guarded: bool = False,
    ) -> None:
        """Write an element of a buffer, or combine it with a value."""
        index = tuple(index)
        here = self._blocks[-1]
        here.statements.append(model.Store(buffer, index, value, combiner, is_guarded=is_guarded))
        here.written.add(buffer)
        self._forget(buffer)
        if not combiner:
            # The value may come from an outer block, but the element has it in this block only.
            self._known[self._key(buffer, index)] = value, here

    def call(
        self, name: str, sizes: Sequence[Value], operands: Sequence[Operand | BufferId]
    ) -> Value:
        """Call a routine on whole buffers, or on subarrays at an index of their leading axes.

        Returns
        -------
        Value
            LAPACK's ``info``; 0 for routines of BLAS.
        """
        routine = ROUTINES[name]
        here = self._blocks[-1]
        out = self._new("i64", here) if routine.reports else None
        given = tuple([one if isinstance(one, Operand) else Operand(one) for one in operands])
        here.statements.append(model.Call(name, tuple(sizes), given, out))
        for operand, role in zip(given, routine.operands, strict=True):
            if role.is_written:
                here.written.add(operand.buffer)
                self._forget(operand.buffer)
        return self.index(0) if out is None else out

    def draw(self, name: str, generator: BufferId, args: Sequence[Value]) -> Value:
        """Draw a random number here, after all earlier draws from the generator.

        Parameters
        ----------
        name
            The distribution.
        generator
            An input of one ``u64``, the generator's address. Its `is_once` is False.
        args
            The parameters of the distribution.
        """
        here = self._blocks[-1]
        out = self._new(DRAWS[name].gives, here)
        here.statements.append(model.Draw(out, name, generator, tuple(args)))
        here.written.add(generator)
        return out

    def _forget(self, buffer: BufferId) -> None:
        if not self.program.buffers[buffer].is_once:
            self._versions[buffer] = self._versions.get(buffer, 0) + 1

    # Blocks

    @contextmanager
    def _open(self) -> Iterator[Block]:
        block = Block(len(self._blocks))
        self._blocks.append(block)
        try:
            yield block
        finally:
            self._blocks.pop()
            block.is_open = False
            self._blocks[-1].written |= block.written
            for buffer in sorted(block.written):
                self._forget(buffer)

    @contextmanager
    def loop(self, extent: Value) -> Iterator[Loop]:
        """Write a loop, whose body is the ``with`` block.

        Yields
        ------
        Loop
            The loop with its index, to be passed to `reduce` and `carry`.
        """
        with self._open() as block:
            loop = Loop(self._new("i64", block))
            yield loop
        self._blocks[-1].statements.append(
            model.For(
                loop.index, extent, block.statements, loop.reductions, loop.carries, loop.until
            )
        )

    def reduce(self, loop: Loop, combiner: str, initial: Value, term: Value) -> Value:
        """Add a reduction of a term to a loop, the innermost open one.

        Equal reductions of a loop share one result.

        Returns
        -------
        Value
            The result, defined after the loop.
        """
        key = combiner, initial, term
        out = loop.known.get(key)
        if out is None:
            out = loop.known[key] = self._new(self._dtypes[initial], self._blocks[-2])
            loop.reductions.append(model.Reduction(out, combiner, initial, term))
        return out

    def carried(self, dtype: str) -> Value:
        """Return a new loop-carried value of the innermost open loop."""
        return self._new(dtype, self._blocks[-1])

    def carry(self, loop: Loop, inner: Value, initial: Value, following: Value) -> Value:
        """Set the initial and following values of a carry; return its value after the loop."""
        out = self._new(self._dtypes[initial], self._blocks[-2])
        loop.carries.append(model.Carry(out, inner, initial, following))
        return out

    @contextmanager
    def block(self) -> Iterator[list[Statement]]:
        """Write one side of a branch; yield the list of its statements."""
        with self._open() as block:
            yield block.statements

    def branch(
        self,
        condition: Value,
        then: list[Statement],
        otherwise: list[Statement],
        choices: Sequence[tuple[Value, Value]],
    ) -> list[Value]:
        """Add a branch of two blocks, and return the value of each choice."""
        outs = [
            model.Choice(self._new(self._dtypes[one], self._blocks[-1]), one, other)
            for one, other in choices
        ]
        self._blocks[-1].statements.append(model.If(condition, then, otherwise, outs))
        return [choice.out for choice in outs]

    def check(
        self, condition: Value, exception: type[BaseException], message: str, *details: Value
    ) -> None:
        """Check a condition, unless it is known to hold or a dominating check has tested it."""
        if self.number(condition) is True:
            return
        checked = self._checked.get(condition)
        if checked is not None and checked.is_open:
            # Wherever this check would fail, the earlier one already has.
            return
        self._checked[condition] = self._blocks[-1]
        failure = model.Failure(exception, message)
        failures = self.program.failures
        number = self._failures.setdefault(failure, len(failures))
        if number == len(failures):
            failures.append(failure)
        self._blocks[-1].statements.append(model.Check(condition, number, details))
