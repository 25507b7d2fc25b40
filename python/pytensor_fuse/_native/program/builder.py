"""Builds programs statement by statement, sharing and hoisting what it can.

Equal operations on equal values are one value (global value numbering within the open blocks), and
an operation goes to the outermost block that has its arguments: operations are total, so running
one where its result is not needed is harmless. A load of an element that was stored or loaded
before is the value of that statement. So programs that a pass writes out again through a builder
come out with common subexpressions shared, invariant work hoisted and stores forwarded to loads.
"""

from __future__ import annotations

import struct
from contextlib import contextmanager
from ctypes import c_float
from typing import TYPE_CHECKING, Any

from pytensor_fuse._native.program.allocations import add_allocations
from pytensor_fuse._native.program.blocks import Block, Loop
from pytensor_fuse._native.program.external.draws import DRAWS
from pytensor_fuse._native.program.external.routines import ROUTINES
from pytensor_fuse._native.program.folding import fold
from pytensor_fuse._native.program.model import (
    Allocate,
    Buffer,
    BufferId,
    BufferKind,
    Call,
    Carry,
    Check,
    Choice,
    Draw,
    Failure,
    For,
    If,
    Load,
    Op,
    Operand,
    Program,
    Reduction,
    Statement,
    Store,
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
        Whether mathematical functions are those that Numba's back-end calls, to the last bit.
    failures
        Failures that the program has from the start.
    """

    def __init__(
        self,
        *,
        reassociates: bool = False,
        calls_libm: bool = False,
        failures: Iterable[Failure] = (),
    ) -> None:
        self.program = Program(reassociates=reassociates, calls_libm=calls_libm)
        self.program.failures += failures
        # The number of each; of equal ones, the first.
        self._failures: dict[Failure, int] = {}
        for number, failure in enumerate(self.program.failures):
            self._failures.setdefault(failure, number)
        self._dtypes = self.program.dtypes
        self._constants: dict[tuple[str, object], Value] = {}
        self._lengths: dict[tuple[BufferId, int], Value] = {}
        root = Block(0)
        self._blocks = [root]
        self._homes: list[Block] = []
        self._known: dict[tuple[Any, ...], tuple[Value, Block]] = {}
        # Where conditions have been checked.
        self._checked: dict[Value, Block] = {}
        # Contents of buffers that are written more than once hold until the next write.
        self._versions: dict[BufferId, int] = {}
        self._is_guarding = False
        # Buffers that come to be before their first use, and before which statement at the latest.
        self._unplaced: dict[BufferId, int] = {}
        self.program.body = root.statements

    @property
    def n_open_blocks(self) -> int:
        """The number of blocks that are open, the outermost one too."""
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
        """Return how many blocks are around the one that defines a value."""
        return self._homes[value].depth

    def constant(self, dtype: str, number: bool | int | float) -> Value:
        """Return the value of a literal."""
        is_float = dtype[0] == "f"
        if dtype == "f32":
            # Folding takes the literal for what it will be when the program runs.
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
        """Return the literal that a value is, or None."""
        return self.program.constants.get(value)

    def is_visible(self, value: Value) -> bool:
        """Whether a value is defined in a block that is open."""
        return self._homes[value].is_open

    def length(self, buffer: BufferId, axis: int) -> Value:
        """Return the length of an axis of a buffer that the caller gives, which is not known."""
        key = buffer, axis
        found = self._lengths.get(key)
        if found is None:
            found = self._lengths[key] = self._new("i64", self._blocks[0])
            self.program.lengths[found] = key
        return found

    def op(self, name: str, *args: Value) -> Value:
        """Return the value of an operation, all of whose arguments have one dtype."""
        dtype = result_dtype(name, tuple([self._dtypes[arg] for arg in args]))
        return self._op(name, dtype, args)

    def operation(self, name: str, dtype: str, args: tuple[Value, ...]) -> Value:
        """Return the value of an operation, no cast, of which the result's dtype is given."""
        return self._op(name, dtype, args)

    def cast(self, value: Value, dtype: str) -> Value:
        """Return a value of another dtype, converted as C converts."""
        return value if self._dtypes[value] == dtype else self._op("cast", dtype, (value,))

    def _op(self, name: str, dtype: str, args: tuple[Value, ...]) -> Value:
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
        home.statements.append(Op(out, name, args))
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
        self.program.buffers.append(Buffer(kind, position, dtype, tuple(lengths), is_once=is_once))
        return len(self.program.buffers) - 1

    def given(
        self, kind: BufferKind, position: int, dtype: str, shape: Sequence[int | None]
    ) -> BufferId:
        """Add a buffer that the caller gives, of which some lengths may be unknown (None)."""
        number = self.buffer(kind, position, dtype, ())
        self.program.buffers[number].lengths = tuple(
            [
                self.length(number, axis) if length is None else self.index(length)
                for axis, length in enumerate(shape)
            ]
        )
        return number

    def allocate(self, buffer: BufferId) -> None:
        """Let a buffer come to be here."""
        self._blocks[-1].statements.append(Allocate(buffer))

    def allocate_around(self, buffer: BufferId) -> None:
        """Let a buffer come to be before the innermost open block."""
        self._blocks[-2].statements.append(Allocate(buffer))

    def allocate_before_use(self, buffer: BufferId) -> None:
        """Let a buffer come to be before what accesses it first, and after the checks before that.

        It comes to be no later than here. Lengths that are computed may be negative, or too large,
        until a check has passed. `place_allocations` writes the statement.

        Raises
        ------
        ValueError
            If a length is known in an inner block only.
        """
        self._require_outermost(buffer)
        self._unplaced[buffer] = len(self._blocks[0].statements)

    def place_allocations(self) -> None:
        """Write the statements that `allocate_before_use` has promised, in one walk for all."""
        add_allocations(self._blocks[0].statements, self._unplaced)
        self._unplaced = {}

    def _require_outermost(self, buffer: BufferId) -> None:
        if any(self._homes[length].depth for length in self.program.buffers[buffer].lengths):
            raise ValueError("an output has lengths that are known in an inner block only")

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
        home.statements.append(Load(out, buffer, index, is_guarded=is_guarded))
        self._known[key] = out, home
        return out

    @contextmanager
    def guarding(self) -> Iterator[None]:
        """Let all loads meanwhile be in bounds only because a check before them has passed."""
        outer, self._is_guarding = self._is_guarding, True
        try:
            yield
        finally:
            self._is_guarding = outer

    def _home_of_load(self, buffer: BufferId, index: tuple[Value, ...], is_guarded: bool) -> Block:
        """Return the outermost block in which a load is in bounds and reads the same."""
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
        here.statements.append(Store(buffer, index, value, combiner, is_guarded=is_guarded))
        here.written.add(buffer)
        self._forget(buffer)
        if not combiner:
            # The value may come from an outer block; it is known in this one only.
            self._known[self._key(buffer, index)] = value, here

    def call(
        self, name: str, sizes: Sequence[Value], operands: Sequence[Operand | BufferId]
    ) -> Value:
        """Call a routine on whole buffers, or on what they have at indices of their first axes.

        Returns
        -------
        Value
            What LAPACK reports; 0 for routines of BLAS.
        """
        routine = ROUTINES[name]
        here = self._blocks[-1]
        out = self._new("i64", here) if routine.reports else None
        given = tuple([one if isinstance(one, Operand) else Operand(one) for one in operands])
        here.statements.append(Call(name, tuple(sizes), given, out))
        for operand, role in zip(given, routine.operands, strict=True):
            if role.is_written:
                here.written.add(operand.buffer)
                self._forget(operand.buffer)
        return self.index(0) if out is None else out

    def draw(self, name: str, generator: BufferId, args: Sequence[Value]) -> Value:
        """Draw a random number, here and after all earlier draws from the generator.

        Parameters
        ----------
        name
            The distribution.
        generator
            An input of one ``u64``, its address, that is not once.
        args
            Its parameters.
        """
        here = self._blocks[-1]
        out = self._new(DRAWS[name].gives, here)
        here.statements.append(Draw(out, name, generator, tuple(args)))
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
        """Write a loop; what the block is given has the loop's index.

        Yields
        ------
        Loop
            For `reduce` and `carry`.
        """
        with self._open() as block:
            loop = Loop(self._new("i64", block))
            yield loop
        self._blocks[-1].statements.append(
            For(
                loop.index,
                extent,
                block.statements,
                loop.reductions,
                loop.carries,
                loop.until,
            )
        )

    def reduce(self, loop: Loop, combiner: str, initial: Value, term: Value) -> Value:
        """Let a loop, the innermost open one, combine a term of each iteration.

        Equal reductions of a loop are one.

        Returns
        -------
        Value
            What is there after the loop.
        """
        key = combiner, initial, term
        out = loop.known.get(key)
        if out is None:
            out = loop.known[key] = self._new(self._dtypes[initial], self._blocks[-2])
            loop.reductions.append(Reduction(out, combiner, initial, term))
        return out

    def carried(self, dtype: str) -> Value:
        """Return a value that the innermost open loop hands from an iteration to the next."""
        return self._new(dtype, self._blocks[-1])

    def carry(self, loop: Loop, inner: Value, initial: Value, following: Value) -> Value:
        """Say what a carried value is at first and in each next iteration; return the last."""
        out = self._new(self._dtypes[initial], self._blocks[-2])
        loop.carries.append(Carry(out, inner, initial, following))
        return out

    @contextmanager
    def block(self) -> Iterator[list[Statement]]:
        """Write a side of a branch; the block is given the list of its statements."""
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
            Choice(self._new(self._dtypes[one], self._blocks[-1]), one, other)
            for one, other in choices
        ]
        self._blocks[-1].statements.append(If(condition, then, otherwise, outs))
        return [choice.out for choice in outs]

    def check(
        self, condition: Value, exception: type[BaseException], message: str, *details: Value
    ) -> None:
        """Let the call fail unless a condition holds, or has been checked on the way here."""
        if self.number(condition) is True:
            return
        checked = self._checked.get(condition)
        if checked is not None and checked.is_open:
            # That check has failed if this one would.
            return
        self._checked[condition] = self._blocks[-1]
        failure = Failure(exception, message)
        failures = self.program.failures
        number = self._failures.setdefault(failure, len(failures))
        if number == len(failures):
            failures.append(failure)
        self._blocks[-1].statements.append(Check(condition, number, details))
