"""Merge sort: bottom-up, stable and branch-free.

Runs of 4 elements are sorted in registers. Then pairs of runs of 4, 8, 16 ... elements are merged,
from one half of a buffer to the other. A pair of whole runs is merged from both ends at once: as
many steps from each end as a run has elements fill the result, and no run is exhausted before the
last of these steps, so that bounds need no comparisons.

No branch depends on elements, because it would be unpredictable. Selections that LLVM would turn
into branches are written with masks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pytensor_fuse._native.program.operations import identity

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor_fuse._native.lowering.types import BufferId, Builder, Context, Value


_FIRST_LEVEL: Final = 2
_RUN: Final = 1 << _FIRST_LEVEL
# A run of 2**62 elements is longer than any array.
_MOST_LEVELS: Final = 62
# The sorting network of a run: compare-and-swap of neighbors is stable.
_NEIGHBOURS: Final = (0, 2, 1, 0, 2, 1)


class Line(NamedTuple):
    """Buffers of two halves each, in which a line of elements is sorted.

    Attributes
    ----------
    keys
        The elements.
    places
        The original position of each element; None if not requested.
    half
        The length of a half: that of the line, padded to whole runs.
    """

    keys: BufferId
    places: BufferId | None
    half: Value


class SortedLine(NamedTuple):
    """A line that has been sorted, NaN last.

    Attributes
    ----------
    key
        Returns the element at a position of the sorted line.
    place
        Returns its original position, if requested.
    """

    key: Callable[[Value], Value]
    place: Callable[[Value], Value]


def new_line(context: Context, dtype: str, length: Value, *, with_places: bool) -> Line:
    """Return buffers for lines of a given length."""
    builder = context.builder
    half = builder.op("add", length, builder.index(_RUN - 1))
    size = [builder.op("shl", half, builder.index(1))]
    keys = context.temporary(dtype, size, is_once=False)
    places = context.temporary("i64", size, is_once=False) if with_places else None
    return Line(keys, places, half)


def sort_line(
    context: Context, line: Line, length: Value, element: Callable[[Value], Value]
) -> SortedLine:
    """Sort a line; equal elements stay in order.

    Parameters
    ----------
    context
        The lowering.
    line
        The buffers of the sort.
    length
        The number of elements.
    element
        Returns the element at a position.
    """
    builder = context.builder
    with builder.guarding():
        return _Sort(builder, line).sorted(length, element)


class _Sort:
    def __init__(self, builder: Builder, line: Line) -> None:
        self._builder = builder
        self._line = line
        self._dtype = builder.program.buffers[line.keys].dtype
        self._buffers = [one for one in (line.keys, line.places) if one is not None]

    def sorted(self, length: Value, element: Callable[[Value], Value]) -> SortedLine:
        builder, line = self._builder, self._line
        op, zero, one = builder.op, builder.index(0), builder.index(1)
        n_numbers = self._fill(length, element)
        first_level = builder.index(_FIRST_LEVEL)
        n_runs = op("shr", op("add", n_numbers, builder.index(_RUN - 1)), first_level)
        end = op("shl", n_runs, first_level)
        self._fill_last_run(n_numbers, end)
        n_runs = op("select", self._is_in_order(end), zero, n_runs)
        with builder.loop(n_runs) as runs:
            self._sort_run(op("shl", runs.index, first_level))
        is_sorted = op("le", n_runs, one)
        with builder.loop(op("select", is_sorted, zero, builder.index(_MOST_LEVELS))) as levels:
            source, target = builder.carried("i64"), op("and", levels.index, one)
            target = op("select", op("eq", target, zero), line.half, zero)
            level = op("add", levels.index, first_level)
            width, both = op("shl", one, level), op("shl", builder.index(2), level)
            n_pairs = op("shr", end, op("add", level, one))
            with builder.loop(n_pairs) as pairs:
                begin = op("mul", pairs.index, both)
                self._merge_whole(op("add", source, begin), op("add", target, begin), width)
            begin = op("mul", n_pairs, both)
            n_rest = op("sub", end, begin)
            self._merge_rest(op("add", source, begin), op("add", target, begin), width, n_rest)
            levels.until = op("ge", both, end)
            last = builder.carry(levels, source, zero, target)
        is_float = self._dtype[0] == "f"

        def load(buffer: BufferId, position: Value) -> Value:
            at = op("add", last, position)
            if is_float:
                # NaNs are stored in reverse order at the end of the first half.
                is_number = op("lt", position, n_numbers)
                behind = op("sub", op("sub", line.half, one), op("sub", position, n_numbers))
                at = op("select", is_number, at, behind)
            return builder.load(buffer, (at,), is_guarded=True)

        def place(position: Value) -> Value:
            assert line.places is not None
            return load(line.places, position)

        return SortedLine(lambda position: load(line.keys, position), place)

    def _fill(self, length: Value, element: Callable[[Value], Value]) -> Value:
        """Store a line to the first half, NaNs at its end; return the number of other elements."""
        builder, line = self._builder, self._line
        op, zero, one = builder.op, builder.index(0), builder.index(1)
        with builder.loop(length) as loop:
            key = element(loop.index)
            if self._dtype[0] != "f":
                self._store(loop.index, [key, loop.index])
                return length
            before = builder.carried("i64")
            is_number = op("eq", key, key)
            from_end = op("sub", op("sub", line.half, one), op("sub", loop.index, before))
            self._store(op("select", is_number, before, from_end), [key, loop.index])
            following = op("add", before, builder.cast(is_number, "i64"))
            return builder.carry(loop, before, zero, following)

    def _fill_last_run(self, n_numbers: Value, end: Value) -> None:
        """Pad the last run with elements that sort behind all others."""
        builder = self._builder
        largest = builder.constant(self._dtype, identity("minimum", self._dtype))
        with builder.loop(builder.op("sub", end, n_numbers)) as loop:
            at = builder.op("add", n_numbers, loop.index)
            self._store(at, [largest, builder.index(0)])

    def _is_in_order(self, end: Value) -> Value:
        """Return whether the line is already sorted."""
        builder, keys = self._builder, self._line.keys
        one = builder.index(1)
        with builder.loop(builder.op("sub", end, one)) as loop:
            following = builder.load(keys, (builder.op("add", loop.index, one),))
            is_less = builder.op("lt", following, builder.load(keys, (loop.index,)))
            loop.until = is_less
            found = builder.carry(
                loop, builder.carried("bool"), builder.constant("bool", False), is_less
            )
        return builder.op("not", found)

    def _store(self, at: Value, values: list[Value]) -> None:
        for buffer, value in zip(self._buffers, values, strict=False):
            self._builder.store(buffer, (at,), value, is_guarded=True)

    def _sort_run(self, begin: Value) -> None:
        builder = self._builder
        at = [builder.op("add", begin, builder.index(number)) for number in range(_RUN)]
        run = [[builder.load(buffer, (place,)) for buffer in self._buffers] for place in at]
        for number in _NEIGHBOURS:
            one, other = run[number : number + 2]
            swaps = builder.op("lt", other[0], one[0])
            pairs = [self._swapped(swaps, *pair) for pair in zip(one, other, strict=True)]
            run[number], run[number + 1] = [list(values) for values in zip(*pairs, strict=True)]
        for place, values in zip(at, run, strict=True):
            self._store(place, values)

    def _swapped(self, swaps: Value, one: Value, other: Value) -> tuple[Value, Value]:
        """Return two values, swapped under a condition."""
        builder = self._builder
        dtype = builder.dtype(one)
        if dtype[0] in "fb":
            first = builder.op("select", swaps, other, one)
            return first, builder.op("select", swaps, one, other)
        mask = builder.op("neg", builder.cast(swaps, dtype))
        differs = builder.op("and", builder.op("xor", one, other), mask)
        return builder.op("xor", one, differs), builder.op("xor", other, differs)

    def _put(self, to: Value, step: Value, first: Value, second: Value) -> None:
        """Store the element at one of two positions: the first for step 0, the second for 1."""
        builder = self._builder
        differs = builder.op("xor", first, second)
        at = builder.op("xor", first, builder.op("and", differs, builder.op("neg", step)))
        self._store(to, [builder.load(buffer, (at,)) for buffer in self._buffers])

    def _merge_whole(self, source: Value, target: Value, width: Value) -> None:
        """Merge two whole runs."""
        builder, keys = self._builder, self._line.keys
        op, one = builder.op, builder.index(1)
        middle = op("add", source, width)
        middle_end, end = op("sub", middle, one), op("sub", op("add", middle, width), one)
        target_end = op("sub", op("add", target, op("shl", width, one)), one)
        with builder.loop(width) as loop:
            low, high, low_end, high_end = [builder.carried("i64") for _ in range(4)]
            is_high = op("lt", builder.load(keys, (high,)), builder.load(keys, (low,)))
            is_low = op("lt", builder.load(keys, (high_end,)), builder.load(keys, (low_end,)))
            step, step_end = builder.cast(is_high, "i64"), builder.cast(is_low, "i64")
            self._put(op("add", target, loop.index), step, low, high)
            self._put(op("sub", target_end, loop.index), step_end, high_end, low_end)
            builder.carry(loop, high, middle, op("add", high, step))
            builder.carry(loop, low, source, op("sub", op("add", low, one), step))
            builder.carry(loop, low_end, middle_end, op("sub", low_end, step_end))
            builder.carry(loop, high_end, end, op("add", op("sub", high_end, one), step_end))

    def _merge_rest(self, source: Value, target: Value, width: Value, n_rest: Value) -> None:
        """Merge the rest at the end of the line: a run, and possibly a part of another."""
        builder, keys = self._builder, self._line.keys
        op, one = builder.op, builder.index(1)
        middle, end = op("add", source, op("minimum", width, n_rest)), op("add", source, n_rest)
        last_low, last_high = op("sub", middle, one), op("sub", end, one)
        with builder.loop(n_rest) as loop:
            low, high = builder.carried("i64"), builder.carried("i64")
            first, second = op("minimum", low, last_low), op("minimum", high, last_high)
            is_high = op("lt", builder.load(keys, (second,)), builder.load(keys, (first,)))
            is_high = op("or", is_high, op("ge", low, middle))
            is_high = op("and", is_high, op("lt", high, end))
            step = builder.cast(is_high, "i64")
            self._put(op("add", target, loop.index), step, first, second)
            builder.carry(loop, high, middle, op("add", high, step))
            builder.carry(loop, low, source, op("sub", op("add", low, one), step))
