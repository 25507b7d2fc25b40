"""Slices, with Python's rules for bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.types import Builder, Value

_MOST: Final = (1 << 63) - 1
# The sum of a length and a step below this bound does not overflow.
_SMALL: Final = 1 << 31


class Span(NamedTuple):
    """The positions ``start``, ``start + step``, ... along an axis, all in bounds.

    Attributes
    ----------
    start, step
        The first position and the distance between two.
    length
        The number of positions.
    """

    start: Value
    step: Value
    length: Value

    def at(self, builder: Builder, index: Value) -> Value:
        """Return the position of an index."""
        return builder.op("add", self.start, builder.op("mul", index, self.step))


def whole(builder: Builder, length: Value) -> Span:
    """Return the span of a whole axis."""
    return Span(builder.index(0), builder.index(1), length)


def as_i64(builder: Builder, value: Value) -> Value:
    """Return an integer as ``i64``; larger numbers saturate."""
    if builder.dtype(value) == "u64":
        value = builder.op("minimum", value, builder.constant("u64", _MOST))
    return builder.cast(value, "i64")


def span_of(
    builder: Builder, length: Value, start: Value | None, stop: Value | None, step: Value | None
) -> Span:
    """Return the span of a slice along an axis.

    Parameters
    ----------
    builder
        The builder of the program; a step that may be zero is checked.
    length
        The length of the axis.
    start, stop, step
        Integers of any dtype, or None where omitted.
    """
    start = None if start is None else as_i64(builder, start)
    stop = None if stop is None else as_i64(builder, stop)
    step = builder.index(1) if step is None else as_i64(builder, step)
    number = builder.number(step)
    if number is None or number == 0:
        return _either_way(builder, length, start, stop, step)
    if number > 0:
        return _forwards(builder, length, start, stop, int(number))
    return _backwards(builder, length, start, stop, int(number))


def _clipped(builder: Builder, place: Value, length: Value, least: int) -> Value:
    """Return a slice bound, wrapped if negative, and clipped to least ... length + least."""
    number = builder.number(place)
    low = builder.index(least)
    high = builder.op("add", length, low)
    if number == least == 0:
        # Lengths are never negative.
        return low
    if number is not None and number >= 0:
        return builder.op("minimum", place, high)
    from_back = builder.op("maximum", builder.op("add", length, place), low)
    if number is not None:
        return from_back
    is_negative = builder.op("lt", place, builder.index(0))
    return builder.op("select", is_negative, from_back, builder.op("minimum", place, high))


def _forwards(
    builder: Builder, length: Value, start: Value | None, stop: Value | None, step: int
) -> Span:
    zero = builder.index(0)
    first = zero if start is None else _clipped(builder, start, length, 0)
    last = length if stop is None else _clipped(builder, stop, length, 0)
    width = _width(builder, length, start, stop)
    if width is None:
        width = builder.op("sub", last, first)
        width = width if first == zero else builder.op("maximum", width, zero)
    number = None if start is None else builder.number(start)
    if number is not None and number >= 0:
        # Where clipping would change the start, the span is empty.
        first = builder.index(int(number))
    return Span(first, builder.index(step), _steps(builder, width, step))


def _width(
    builder: Builder, length: Value, start: Value | None, stop: Value | None
) -> Value | None:
    """Return the width of a slice in a canonical form, or None.

    The form shows that ``x[1:]`` and ``x[:-1]`` have the same length.
    """
    zero = builder.index(0)
    front = 0 if start is None else builder.number(start)
    back = 0 if stop is None else builder.number(stop)
    if front is None or back is None:
        return None
    if front >= 0 and (stop is None or back < 0):
        if front - back > _MOST:
            return zero
        if front == back:
            return length
        less = builder.op("add", length, builder.index(int(back - front)))
        return builder.op("maximum", less, zero)
    if front < 0 and stop is None and front >= -_MOST:
        return builder.op("minimum", builder.index(int(-front)), length)
    if front >= back and (front < 0) == (back < 0):
        return zero
    return None


def _backwards(
    builder: Builder, length: Value, start: Value | None, stop: Value | None, step: int
) -> Span:
    minus_one = builder.index(-1)
    end = builder.op("add", length, minus_one)
    first = end if start is None else _clipped(builder, start, length, -1)
    last = minus_one if stop is None else _clipped(builder, stop, length, -1)
    if start is None and stop is None:
        width = length
    else:
        width = builder.op("maximum", builder.op("sub", first, last), builder.index(0))
    step = max(step, -_MOST)
    return Span(first, builder.index(step), _steps(builder, width, -step))


def _steps(builder: Builder, width: Value, step: int) -> Value:
    """Return the number of steps within a width."""
    if step == 1:
        return width
    if step < _SMALL:
        padded = builder.op("add", width, builder.index(step - 1))
        return builder.op("floordiv", padded, builder.index(step))
    return _steps_at_run_time(builder, width, builder.index(step))


def _steps_at_run_time(builder: Builder, width: Value, step: Value) -> Value:
    one, zero = builder.index(1), builder.index(0)
    whole_steps = builder.op("floordiv", builder.op("sub", width, one), step)
    is_any = builder.op("gt", width, zero)
    return builder.op("select", is_any, builder.op("add", whole_steps, one), zero)


def _either_way(
    builder: Builder, length: Value, start: Value | None, stop: Value | None, step: Value
) -> Span:
    """Return the span of a slice whose step is known only at run time."""
    zero, minus_one = builder.index(0), builder.index(-1)
    builder.check(builder.op("ne", step, zero), ValueError, "slice step cannot be zero")
    step = builder.op("maximum", step, builder.index(-_MOST))
    is_back = builder.op("lt", step, zero)

    def choose(forwards: Value, backwards: Value) -> Value:
        return builder.op("select", is_back, backwards, forwards)

    end = builder.op("add", length, minus_one)
    first = choose(
        zero if start is None else _clipped(builder, start, length, 0),
        end if start is None else _clipped(builder, start, length, -1),
    )
    last = choose(
        length if stop is None else _clipped(builder, stop, length, 0),
        minus_one if stop is None else _clipped(builder, stop, length, -1),
    )
    width = choose(builder.op("sub", last, first), builder.op("sub", first, last))
    width = builder.op("maximum", width, zero)
    return Span(first, step, _steps_at_run_time(builder, width, builder.op("abs", step)))
