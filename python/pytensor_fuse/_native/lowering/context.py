"""Lowering context: loop nests, new arrays and checks of lengths, for rules."""

from __future__ import annotations

import math
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pytensor_fuse._native.lowering.registry import NoRuleError
from pytensor_fuse._native.lowering.tensors import DTYPES, Layout, Tensor, stored
from pytensor_fuse._native.program.model import Operand

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pytensor.graph.basic import Constant, Variable

    from pytensor_fuse._native.lowering.tensors import Index
    from pytensor_fuse._native.program.builder import Builder
    from pytensor_fuse._native.program.model import BufferId, Value

# An axis of at most this length is unrolled next to a longer one.
_SHORT: Final = 8
# Unrolling makes at most this many copies of a nest's body.
_MOST_COPIES: Final = 16
# A bound on the number of elements of any array.
_MOST_ELEMENTS: Final = 2.0**62
_TOO_MANY: Final = "an array would have more elements than any memory"


class Context:
    """A lowering in progress.

    Attributes
    ----------
    builder
        The builder of the program.
    constants
        The arrays of its constant buffers.
    streams
        The bits of matrices whose rows are constant buffers, and these buffers.
    overwritable
        The input buffers that may be overwritten.
    overwritten
        The input buffers that are overwritten.
    by_rows
        The matrices, as buffers and batch indices, that loops over their rows read.
    others
        The names of the third-party rules that have contributed to the program.
    arguments
        The positions of the graph inputs that are not arrays.
    kept
        The parts of constants that are not arrays, with their tensors, for reuse.
    copies
        The positions of inputs of which the program receives a copy, behind all other inputs.
    used_once
        The random generators that only one node reads.
    batch
        The length and the index of each batch axis, while a loop over a batch is being emitted.
    """

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.constants: list[np.ndarray[Any, Any]] = []
        self.streams: list[tuple[np.ndarray[Any, Any], list[BufferId]]] = []
        self.overwritable: set[BufferId] = set()
        self.overwritten: set[BufferId] = set()
        self.by_rows: set[tuple[BufferId, tuple[Value, ...]]] = set()
        self.others: list[str] = []
        self.arguments: dict[Tensor, int] = {}
        self.kept: list[tuple[np.ndarray[Any, Any], Tensor]] = []
        self.copies: list[int] = []
        self.used_once: set[Variable[Any, Any]] = set()
        self._n_inputs = 0
        self.batch: list[tuple[Value, Value]] = []
        self._same: dict[Value, Value] = {}
        self._n_repeating = 0

    def input(self, dtype: str, shape: Sequence[int | None]) -> BufferId:
        """Add the next input of the program."""
        self._n_inputs += 1
        return self.builder.given("input", self._n_inputs - 1, dtype, shape)

    # Lengths

    def length(self, length: Value) -> Value:
        """Return the representative of all lengths that are known to equal this one."""
        same = self._same
        while (other := same.get(length)) is not None:
            length = other
        return length

    def require_equal(
        self, one: Value, other: Value, exception: type[BaseException], message: str
    ) -> Value:
        """Unify two lengths, by a check unless they are known equal; return the one to use."""
        one, other = self.length(one), self.length(other)
        if one == other:
            return one
        builder = self.builder
        condition = builder.op("eq", one, other)
        builder.check(condition, exception, message, one, other)
        # The better known one becomes the representative.
        if builder.number(other) is not None:
            one, other = other, one
        if builder.n_open_blocks == 1:
            self._same[other] = one
        return one

    def size(self, lengths: Sequence[Value]) -> Value:
        """Return the number of elements of an array, with a check against overflow.

        Stores and loads that are in bounds only because of the check must be guarded.
        """
        if not self._is_of_given(lengths):
            self.builder.check(self.fits(lengths), MemoryError, _TOO_MANY)
        return self.wrapping_size(lengths)

    def _is_of_given(self, lengths: Sequence[Value]) -> bool:
        """Whether an input or a constant has these lengths, which rules out an overflow."""
        counts = Counter(lengths)
        return any(
            buffer.kind in ("input", "constant")
            and len(buffer.lengths) == len(lengths)
            and Counter(buffer.lengths) == counts
            for buffer in self.builder.program.buffers
        )

    def wrapping_size(self, lengths: Sequence[Value]) -> Value:
        """Return the number of elements of an array, which wraps around on overflow."""
        return self.folded("mul", self.builder.index(1), lengths)

    def fits(self, lengths: Sequence[Value]) -> Value:
        """Return a condition that is true if the number of elements of an array does not overflow.

        A single axis never overflows. Lengths may be negative.
        """
        builder = self.builder
        if sum(builder.number(length) != 1 for length in lengths) < 2:
            return builder.constant("bool", True)
        factors = (builder.cast(length, "f64") for length in lengths)
        size = self.folded("mul", builder.constant("f64", 1), factors)
        return builder.op("lt", builder.op("abs", size), builder.constant("f64", _MOST_ELEMENTS))

    def is_empty(self, lengths: Sequence[Value]) -> Value:
        """Return a condition that is true if an array has no elements."""
        builder = self.builder
        are_none = (builder.op("eq", length, builder.index(0)) for length in lengths)
        return self.folded("or", builder.constant("bool", False), are_none)

    def folded(self, name: str, first: Value, others: Iterable[Value]) -> Value:
        """Return the result of an operation on values, from left to right."""
        for other in others:
            first = self.builder.op(name, first, other)
        return first

    # Loops

    def nest(
        self, lengths: Sequence[Value], body: Callable[[Index], None], *, unrolls: bool = True
    ) -> None:
        """Emit a loop nest over the indices of an array, in memory order.

        Short axes are unrolled if there is a longer one, which then is the vectorized axis.
        Iterations must be independent, except for draws, which keep their order.

        Parameters
        ----------
        lengths
            The lengths of the axes.
        body
            Emits one iteration.
        unrolls
            Whether short axes may be unrolled, which does not pay for a long body.
        """
        builder = self.builder
        lengths = [self.length(length) for length in lengths]
        written_out = self._written_out(lengths) if unrolls else frozenset()
        index: list[Value] = [builder.index(0)] * len(lengths)

        def run(axis: int) -> None:
            if axis == len(lengths):
                body(tuple(index))
            elif axis in written_out:
                for place in range(int(builder.number(lengths[axis]) or 0)):
                    index[axis] = builder.index(place)
                    run(axis + 1)
            else:
                with builder.loop(lengths[axis]) as loop:
                    index[axis] = loop.index
                    run(axis + 1)

        run(0)

    def _written_out(self, lengths: Sequence[Value]) -> frozenset[int]:
        """Return the axes of a nest that are unrolled."""
        numbers = [self.builder.number(length) for length in lengths]
        out = {axis for axis, number in enumerate(numbers) if number is not None and number <= 2}
        short = [
            axis
            for axis, number in enumerate(numbers)
            if number is not None and 2 < number <= _SHORT
        ]
        if len(short) + len(out) == len(lengths) and short:
            # No long axis: the last short one stays a loop that can be vectorized.
            short.pop()
        copies = math.prod(int(numbers[axis] or 1) for axis in out)
        for axis in reversed(short):
            copies *= int(numbers[axis] or 1)
            if copies > _MOST_COPIES:
                break
            out.add(axis)
        return frozenset(out)

    def is_short(self, length: Value) -> bool:
        """Whether an axis of this length is unrolled next to a longer one."""
        number = self.builder.number(length)
        return number is not None and number <= _SHORT

    def all_hold(self, length: Value, condition: Callable[[Value], Value]) -> Value:
        """Return whether a condition holds for all indices along an axis."""
        builder = self.builder
        with builder.loop(length) as loop:
            holds = condition(loop.index)
            return builder.reduce(loop, "and", builder.constant("bool", True), holds)

    def branch(
        self,
        condition: Value,
        then: Callable[[], Sequence[Value] | None],
        otherwise: Callable[[], Sequence[Value] | None] = lambda: None,
    ) -> list[Value]:
        """Emit a branch, and return the values of the side that runs.

        Parameters
        ----------
        condition
            The condition, a ``bool`` value.
        then, otherwise
            Emit the statements of a side, and return as many values as the other side, if any.
        """
        builder = self.builder
        with builder.block() as of_then:
            ones = then() or ()
        with builder.block() as of_otherwise:
            others = otherwise() or ()
        choices = list(zip(ones, others, strict=True))
        return builder.branch(condition, of_then, of_otherwise, choices)

    # Arrays

    def temporary(self, dtype: str, lengths: Sequence[Value], *, is_once: bool = True) -> BufferId:
        """Add a temporary buffer; within a loop over a batch, a new one for each iteration."""
        lengths = [self.length(length) for length in lengths]
        buffer = self.builder.buffer("temporary", 0, dtype, lengths, is_once=is_once)
        self.renew(buffer)
        return buffer

    def renew(self, buffer: BufferId) -> None:
        """Make a temporary buffer local to each iteration of an open loop."""
        if self.batch or self._n_repeating:
            self.builder.allocate(buffer)

    @contextmanager
    def repeating(self) -> Iterator[None]:
        """Make temporary buffers within the context local to each iteration of an open loop."""
        batch, self.batch = self.batch, []
        self._n_repeating += 1
        try:
            yield
        finally:
            self._n_repeating -= 1
            self.batch = batch

    def array(self, dtype: str, lengths: Sequence[Value], *, is_once: bool = True) -> Operand:
        """Return a new array for a result; within a loop over a batch, a part of a batch array.

        Parameters
        ----------
        dtype, lengths
            The dtype and lengths of the array.
        is_once
            Whether each element is written at most once, and not read before that.
        """
        lengths = [self.length(length) for length in lengths]
        outer = [length for length, _ in self.batch]
        if not self.batch or any(self.builder.depth(one) for one in (*outer, *lengths)):
            return Operand(self.temporary(dtype, lengths, is_once=is_once))
        # In a loop around the batch, each iteration writes the array again.
        is_once = is_once and not self._n_repeating
        buffer = self.builder.buffer("temporary", 0, dtype, [*outer, *lengths], is_once=is_once)
        return Operand(buffer, tuple([index for _, index in self.batch]))

    def held(self, array: Operand) -> Tensor:
        """Return an array in memory as a tensor."""
        builder, (buffer, prefix) = self.builder, array
        if not prefix:
            return stored(builder, buffer)
        about = builder.program.buffers[buffer]
        lengths = about.lengths[len(prefix) :]
        return Tensor(
            about.dtype,
            lengths,
            lambda index: builder.load(buffer, prefix + tuple(index)),
            layout=Layout(buffer, prefix, tuple(range(len(lengths)))),
        )

    def fill(self, array: Operand, at: Callable[[Index], Value]) -> None:
        """Emit stores to all elements of an array in memory."""
        builder, (buffer, prefix) = self.builder, array
        lengths = builder.program.buffers[buffer].lengths[len(prefix) :]
        self.nest(lengths, lambda index: builder.store(buffer, prefix + tuple(index), at(index)))

    def write(self, buffer: BufferId, tensor: Tensor) -> None:
        """Emit stores of all elements of an array to a buffer of the same lengths."""
        builder = self.builder
        self.nest(tensor.lengths, lambda index: builder.store(buffer, index, tensor.at(index)))

    def filled(self, dtype: str, lengths: Sequence[Value]) -> BufferId:
        """Return a new buffer of zeros that can be written again."""
        buffer = self.temporary(dtype, lengths, is_once=False)
        self.fill_with(Operand(buffer), 0)
        return buffer

    def fill_with(self, array: Operand, number: float) -> None:
        """Emit stores of one number to all elements of an array in memory."""
        dtype = self.builder.program.buffers[array.buffer].dtype
        value = self.builder.constant(dtype, number)
        self.fill(array, lambda _: value)

    def fill_unless(self, condition: Value, array: Operand) -> None:
        """Fill an array in memory with NaN unless a condition holds."""
        self.branch(condition, lambda: None, lambda: self.fill_with(array, math.nan))

    def of_dtype(self, tensor: Tensor, dtype: str) -> Tensor:
        """Return an array converted to a dtype."""
        if tensor.dtype == dtype:
            return tensor
        builder = self.builder
        return Tensor(dtype, tensor.lengths, lambda index: builder.cast(tensor.at(index), dtype))

    def copy_of(self, tensor: Tensor) -> Operand:
        """Return a copy of an array that routines may overwrite; it may be a result."""
        array = self.array(tensor.dtype, tensor.lengths, is_once=False)
        self.fill(array, tensor.at)
        return array

    def materialized(
        self, dtype: str, lengths: Sequence[Value], at: Callable[[Index], Value]
    ) -> Tensor:
        """Return a new array in memory with computed elements."""
        if not lengths:
            value = at(())
            return Tensor(dtype, (), lambda _: value)
        array = self.array(dtype, lengths)
        self.fill(array, at)
        return self.held(array)

    def copied(self, tensor: Tensor, *, is_once: bool = True) -> BufferId:
        """Return a new buffer with a copy of an array."""
        buffer = self.temporary(tensor.dtype, tensor.lengths, is_once=is_once)
        self.fill(Operand(buffer), tensor.at)
        return buffer

    def overwriting(self, tensor: Tensor) -> BufferId | None:
        """Return the buffer of a program input if an op may overwrite it, or None."""
        if tensor.buffer not in self.overwritable:
            return None
        self.overwritten.add(tensor.buffer)
        return tensor.buffer

    def destination(self, tensor: Tensor) -> BufferId | None:
        """Return the buffer of an array if an op may write to it in place; None if it must copy."""
        if tensor.buffer is None:
            return None
        about = self.builder.program.buffers[tensor.buffer]
        if self.overwriting(tensor) is None and about.kind != "temporary":
            return None
        about.is_once = False
        return tensor.buffer

    def constant_tensor(self, variable: Constant[Any]) -> Tensor:
        """Return the tensor of a constant: a literal if all its elements are equal.

        Raises
        ------
        NoRuleError
            If it is not an array of a supported dtype.
        """
        builder = self.builder
        dtype = DTYPES.get(getattr(variable.type, "dtype", ""))
        if dtype is None:
            raise NoRuleError(f"a constant of type {variable.type}")
        data = np.asarray(variable.data, dtype=variable.type.dtype)
        lengths = [builder.index(length) for length in data.shape]
        if data.size and _is_uniform(data):
            value = builder.constant(dtype, data.flat[0].item())
            return Tensor(dtype, lengths, lambda _: value, None, data)
        buffer = builder.given("constant", len(self.constants), dtype, data.shape)
        self.constants.append(np.ascontiguousarray(data))

        def at(index: Index) -> Value:
            places = [builder.number(place) for place in index]
            numbers = tuple([int(place) for place in places if place is not None])
            # An index out of bounds follows a check that fails.
            if len(numbers) < len(index) or not all(
                0 <= number < length for number, length in zip(numbers, data.shape, strict=True)
            ):
                return builder.load(buffer, index)
            return builder.constant(dtype, data[numbers].item())

        return Tensor(dtype, lengths, at, buffer, data)


def _is_uniform(data: np.ndarray[Any, Any]) -> bool:
    """Whether all elements of an array are bitwise equal."""
    first = data.reshape(-1)[:1]
    if data.size == 1:
        return True
    bits = data.view(f"u{data.dtype.itemsize}") if data.flags.c_contiguous else None
    if bits is None:
        return False
    return bool((bits == first.view(bits.dtype)[0]).all())
