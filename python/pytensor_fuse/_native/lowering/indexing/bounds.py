"""Single indices: negative ones count from the end, and none may be out of bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.tensors import Index, Tensor
    from pytensor_fuse._native.program.builder import Builder
    from pytensor_fuse._native.program.model import Value

# What Numba says. Where it does not look, an index out of bounds is an error here all the same.
OUT_OF_BOUNDS: Final = "index is out of bounds"


def wrapped(builder: Builder, value: Value, length: Value) -> Value:
    """Return an index of any dtype as ``i64``, counted from the front.

    Parameters
    ----------
    builder
        Writes the program.
    value
        The index.
    length
        That of its axis.
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
    """Whether each number of a dtype is an index in bounds along an axis.

    Parameters
    ----------
    builder
        Writes the program.
    dtype
        That of the index.
    length
        That of the axis.
    """
    number = builder.number(length)
    bits = int(dtype[1:]) - (dtype[0] == "i")
    return number is not None and number >= 1 << bits


def is_in_bounds(builder: Builder, value: Value, length: Value) -> Value:
    """Return whether an index of any dtype is in bounds.

    Parameters
    ----------
    builder
        Writes the program.
    value
        The index, as it is given.
    length
        That of its axis.
    """
    zero = builder.index(0)
    number = builder.number(value)
    if number is not None and number <= 0:
        place = wrapped(builder, value, length)
        return builder.op("ge", place, zero) if number else builder.op("gt", length, zero)
    if number is not None and builder.dtype(value) != "u64":
        return builder.op("lt", builder.cast(value, "i64"), length)
    # As unsigned numbers, those that are negative are too large.
    if builder.dtype(value) != "u64":
        value = builder.cast(wrapped(builder, value, length), "u64")
    return builder.op("lt", value, builder.cast(length, "u64"))


def checked(builder: Builder, value: Value, length: Value) -> tuple[Value, bool]:
    """Check an index, and return it as ``i64`` from the front.

    Parameters
    ----------
    builder
        Writes the program.
    value
        The index, of any dtype.
    length
        That of its axis.

    Returns
    -------
    Value
        The place.
    bool
        Whether it is in bounds only because of the check.
    """
    condition = is_in_bounds(builder, value, length)
    builder.check(condition, IndexError, OUT_OF_BOUNDS)
    return wrapped(builder, value, length), builder.number(condition) is not True


def guarded(builder: Builder, tensor: Tensor, index: Index) -> Value:
    """Return an element of an array at an index that a check found to be in bounds.

    All that is loaded for it is loaded after the check: also what lies under a view.
    """
    with builder.guarding():
        return tensor.at(index)
