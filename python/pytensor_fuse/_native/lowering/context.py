"""What rules write programs with: nests of loops, new arrays, and checks of lengths."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pytensor_fuse._native.lowering.registry import NoRuleError
from pytensor_fuse._native.lowering.tensors import DTYPES, Layout, Tensor, stored
from pytensor_fuse._native.program.model import Operand

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pytensor.graph.basic import Constant, Variable

    from pytensor_fuse._native.lowering.tensors import Index
    from pytensor_fuse._native.program.builder import Builder
    from pytensor_fuse._native.program.model import BufferId, Value

# An axis of at most so many elements is written out, next to a longer one.
_SHORT: Final = 8
# No nest has more copies of its body.
_MOST_COPIES: Final = 16
# No array has more elements.
_MOST_ELEMENTS: Final = 2.0**62
_TOO_MANY: Final = "an array would have more elements than any memory"


class Context:
    """A lowering in progress.

    Attributes
    ----------
    builder
        Writes the program.
    constants
        The arrays of its constant buffers.
    streams
        The bits of matrices of which each row is a constant buffer, and these buffers.
    overwritable
        The buffers of inputs that may be overwritten.
    overwritten
        Those that have been.
    by_rows
        The matrices, as buffers and indices of their first axes, that loops over their rows read.
    others
        The rules that are not this package's, and have written at the program.
    arguments
        The inputs of the graph that are no arrays: the position of each.
    kept
        The parts of constants that are no arrays, and their tensors.
    copies
        The positions of those of which the program is given a copy, behind all other inputs.
    used_once
        The generators of random numbers that only one node reads.
    batch
        While a loop over matrices is written, the length and the index of each of its axes.
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
        """Return the length that stands for all that are known to equal this one."""
        same = self._same
        while (other := same.get(length)) is not None:
            length = other
        return length

    def require_equal(
        self, one: Value, other: Value, exception: type[BaseException], message: str
    ) -> Value:
        """Let two lengths be equal, by a check unless that is known; return the one to use."""
        one, other = self.length(one), self.length(other)
        if one == other:
            return one
        builder = self.builder
        condition = builder.op("eq", one, other)
        builder.check(condition, exception, message, one, other)
        # The better known one stands for both.
        if builder.number(other) is not None:
            one, other = other, one
        if builder.n_open_blocks == 1:
            self._same[other] = one
        return one

    def size(self, lengths: Sequence[Value]) -> Value:
        """Return the number of elements of an array, checked not to wrap.

        Stores and loads that are in bounds only because of the check have to be guarded.
        """
        if not self._is_of_given(lengths):
            self.builder.check(self.fits(lengths), MemoryError, _TOO_MANY)
        return self.wrapping_size(lengths)

    def _is_of_given(self, lengths: Sequence[Value]) -> bool:
        """Whether there is an array in memory, before anything runs, that has these lengths."""
        counts = Counter(lengths)
        return any(
            buffer.kind in ("input", "constant")
            and len(buffer.lengths) == len(lengths)
            and Counter(buffer.lengths) == counts
            for buffer in self.builder.program.buffers
        )

    def wrapping_size(self, lengths: Sequence[Value]) -> Value:
        """Return the number of elements of an array, which wraps as integers do."""
        size = self.builder.index(1)
        for length in lengths:
            size = self.builder.op("mul", size, length)
        return size

    def fits(self, lengths: Sequence[Value]) -> Value:
        """Return whether the number of elements of an array does not wrap.

        Of one axis it cannot. Lengths may be negative.
        """
        builder = self.builder
        if sum(builder.number(length) != 1 for length in lengths) < 2:
            return builder.constant("bool", True)
        size = builder.constant("f64", 1)
        for length in lengths:
            size = builder.op("mul", size, builder.cast(length, "f64"))
        return builder.op("lt", builder.op("abs", size), builder.constant("f64", _MOST_ELEMENTS))

    def is_empty(self, lengths: Sequence[Value]) -> Value:
        """Return whether an array has no elements."""
        builder = self.builder
        is_empty = builder.constant("bool", False)
        for length in lengths:
            is_none = builder.op("eq", length, builder.index(0))
            is_empty = builder.op("or", is_empty, is_none)
        return is_empty

    # Loops

    def nest(self, lengths: Sequence[Value], body: Callable[[Index], None]) -> None:
        """Run a body for each index into an array.

        Short axes are written out where there is a longer one, which then is the axis of vectors.
        Iterations must not depend on each other.
        """
        builder = self.builder
        lengths = [self.length(length) for length in lengths]
        written_out = self._written_out(lengths)
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
        """Return the axes of a nest that are written out."""
        numbers = [self.builder.number(length) for length in lengths]
        out = {axis for axis, number in enumerate(numbers) if number is not None and number <= 2}
        short = [
            axis
            for axis, number in enumerate(numbers)
            if number is not None and 2 < number <= _SHORT
        ]
        if len(short) + len(out) == len(lengths) and short:
            # No long axis: the last short one is the axis of vectors.
            short.pop()
        copies = 1
        for axis in out:
            copies *= int(numbers[axis] or 1)
        for axis in reversed(short):
            copies *= int(numbers[axis] or 1)
            if copies > _MOST_COPIES:
                break
            out.add(axis)
        return frozenset(out)

    def is_short(self, length: Value) -> bool:
        """Whether an axis of a length is written out next to a longer one."""
        number = self.builder.number(length)
        return number is not None and number <= _SHORT

    # Arrays

    def temporary(self, dtype: str, lengths: Sequence[Value], *, is_once: bool = True) -> BufferId:
        """Add a temporary buffer; while a loop over matrices is written, one for each of them."""
        lengths = [self.length(length) for length in lengths]
        buffer = self.builder.buffer("temporary", 0, dtype, lengths, is_once=is_once)
        self.renew(buffer)
        return buffer

    def renew(self, buffer: BufferId) -> None:
        """Let a temporary buffer be another one in each iteration of an open loop."""
        if self.batch or self._n_repeating:
            self.builder.allocate(buffer)

    @contextmanager
    def repeating(self) -> Iterator[None]:
        """Let temporary buffers meanwhile be new ones in each iteration of an open loop."""
        batch, self.batch = self.batch, []
        self._n_repeating += 1
        try:
            yield
        finally:
            self._n_repeating -= 1
            self.batch = batch

    def array(self, dtype: str, lengths: Sequence[Value], *, is_once: bool = True) -> Operand:
        """Return a new array for a result; while a loop over matrices is written, a part of one.

        Parameters
        ----------
        dtype, lengths
            Those of the array.
        is_once
            Whether each element is written at most once, and not read before that.
        """
        lengths = [self.length(length) for length in lengths]
        outer = [length for length, _ in self.batch]
        if not self.batch or any(self.builder.depth(one) for one in (*outer, *lengths)):
            return Operand(self.temporary(dtype, lengths, is_once=is_once))
        # In a loop around the batch, each iteration writes it again.
        is_once = is_once and not self._n_repeating
        buffer = self.builder.buffer("temporary", 0, dtype, [*outer, *lengths], is_once=is_once)
        return Operand(buffer, tuple([index for _, index in self.batch]))

    def held(self, array: Operand) -> Tensor:
        """Return what an array in memory holds."""
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
        """Write all elements of an array in memory."""
        builder, (buffer, prefix) = self.builder, array
        lengths = builder.program.buffers[buffer].lengths[len(prefix) :]
        self.nest(lengths, lambda index: builder.store(buffer, prefix + tuple(index), at(index)))

    def materialized(
        self, dtype: str, lengths: Sequence[Value], at: Callable[[Index], Value]
    ) -> Tensor:
        """Return a new array with given elements, computed now."""
        if not lengths:
            value = at(())
            return Tensor(dtype, (), lambda _: value)
        array = self.array(dtype, lengths)
        self.fill(array, at)
        return self.held(array)

    def copied(self, tensor: Tensor, *, is_once: bool = True) -> BufferId:
        """Return a new buffer with the elements of an array."""
        buffer = self.temporary(tensor.dtype, tensor.lengths, is_once=is_once)
        self.nest(tensor.lengths, lambda index: self.builder.store(buffer, index, tensor.at(index)))
        return buffer

    def overwriting(self, tensor: Tensor) -> BufferId | None:
        """Return the buffer of an input of the program that an op may overwrite, or None."""
        if tensor.buffer not in self.overwritable:
            return None
        self.overwritten.add(tensor.buffer)
        return tensor.buffer

    def destination(self, tensor: Tensor) -> BufferId | None:
        """Return the buffer of an array that an op may overwrite, to write to; None to copy it."""
        if tensor.buffer is None:
            return None
        about = self.builder.program.buffers[tensor.buffer]
        if self.overwriting(tensor) is None and about.kind != "temporary":
            return None
        about.is_once = False
        return tensor.buffer

    def constant_tensor(self, variable: Constant[Any]) -> Tensor:
        """Return the array of a constant: a literal if all its elements are the same.

        Raises
        ------
        NoRuleError
            If it is not an array of a dtype that programs have.
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
            # What is out of bounds comes after a check that fails.
            if len(numbers) < len(index) or not all(
                0 <= number < length for number, length in zip(numbers, data.shape, strict=True)
            ):
                return builder.load(buffer, index)
            return builder.constant(dtype, data[numbers].item())

        return Tensor(dtype, lengths, at, buffer, data)


def _is_uniform(data: np.ndarray[Any, Any]) -> bool:
    """Whether all elements of an array are the same to the bit."""
    first = data.reshape(-1)[:1]
    if data.size == 1:
        return True
    bits = data.view(f"u{data.dtype.itemsize}") if data.flags.c_contiguous else None
    if bits is None:
        return False
    return bool((bits == first.view(bits.dtype)[0]).all())
