"""Single indices: negative ones count from the end, and bounds are checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.types import Builder, Index, Tensor, Value

# Numba's message. An index out of bounds raises here even where Numba does not check.
OUT_OF_BOUNDS: Final = "index is out of bounds"


def wrapped(builder: Builder, value: Value, length: Value) -> Value:
    """Return an index of any dtype as ``i64``, with negative ones wrapped.

    Parameters
    ----------
    builder
        The builder of the program.
    value
        The index.
    length
        The length of its axis.
    """
    is_signed = builder.dtype(value)[0] == "i"
    value = builder.cast(value, "i64")
    if not is_signed:
        return value
    number = builder.number(value)
    if number is not None:
        return value if number >= 0 else builder.op("add", length, value)
    is_negative = builder.op("lt", value, builder.index(0))
    return builder.op("select", is_negative, builder.op("add", length, value), value)


def is_always_in_bounds(builder: Builder, dtype: str, length: Value) -> bool:
    """Whether all values of a dtype are valid indices along an axis.

    Parameters
    ----------
    builder
        The builder of the program.
    dtype
        The dtype of the index.
    length
        The length of the axis.
    """
    number = builder.number(length)
    bits = int(dtype[1:]) - (dtype[0] == "i")
    return number is not None and number >= 1 << bits


def is_in_bounds(builder: Builder, value: Value, length: Value) -> Value:
    """Return a condition that is true if an index of any dtype is in bounds.

    Parameters
    ----------
    builder
        The builder of the program.
    value
        The index, which may be negative.
    length
        The length of its axis.
    """
    zero = builder.index(0)
    number = builder.number(value)
    if number is not None and number <= 0:
        place = wrapped(builder, value, length)
        return builder.op("ge", place, zero) if number else builder.op("gt", length, zero)
    if number is not None and builder.dtype(value) != "u64":
        return builder.op("lt", builder.cast(value, "i64"), length)
    # As unsigned numbers, negative indices are too large.
    if builder.dtype(value) != "u64":
        value = builder.cast(wrapped(builder, value, length), "u64")
    return builder.op("lt", value, builder.cast(length, "u64"))


def checked(builder: Builder, value: Value, length: Value) -> tuple[Value, bool]:
    """Check an index, and return it as a nonnegative ``i64``.

    Parameters
    ----------
    builder
        The builder of the program.
    value
        The index, of any dtype.
    length
        The length of its axis.

    Returns
    -------
    Value
        The position along the axis.
    bool
        Whether it is in bounds only because of the check.
    """
    condition = is_in_bounds(builder, value, length)
    builder.check(condition, IndexError, OUT_OF_BOUNDS)
    return wrapped(builder, value, length), builder.number(condition) is not True


def guarded(builder: Builder, tensor: Tensor, index: Index) -> Value:
    """Return an element of an array at an index that is in bounds because of a check.

    All loads for it come after the check, including those in the computation of a view.
    """
    with builder.guarding():
        return tensor.at(index)
