"""Index arrays: integers for one axis, or masks for several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from pytensor.graph.basic import Constant
from pytensor.tensor.basic import constant

from pytensor_fuse._native.lowering.arrays.reductions import reduced_along
from pytensor_fuse._native.lowering.indexing.bounds import (
    is_always_in_bounds,
    is_in_bounds,
    wrapped,
)
from pytensor_fuse._native.lowering.indexing.masks import Positions, positions
from pytensor_fuse._native.lowering.tensors import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor_fuse._native.lowering.types import Array, Context, Index, Value, Variable


_MOST: Final = (1 << 63) - 1


class Column(NamedTuple):
    """An index array as positions along one axis.

    Attributes
    ----------
    lengths
        The lengths of the index array.
    stretches
        For each of its axes, whether its only element is broadcast.
    at
        Emits the position, counted from the front, at an index into the index array.
    in_bounds
        The condition that all positions are in bounds; None if they always are.
    may_repeat
        Whether a position may occur more than once.
    is_checked
        Whether an earlier check already established that the positions are in bounds.
    """

    lengths: tuple[Value, ...]
    stretches: tuple[bool, ...]
    at: Callable[[Index], Value]
    in_bounds: Value | None
    may_repeat: bool
    is_checked: bool = False


def columns_of(
    context: Context, variable: Variable, given: Tensor, lengths: Sequence[Value], first: int
) -> list[Column]:
    """Return the columns of an index array, one for each axis that it indexes.

    Parameters
    ----------
    context
        The lowering.
    variable, given
        The variable and the tensor of the index array.
    lengths
        The lengths of the indexed array, from the first axis that the index array applies to.
    first
        The number of that axis.
    """
    # A constant of the outer graph may be an input of an inner one.
    data = np.asarray(variable.data) if isinstance(variable, Constant) else given.data
    if variable.type.dtype == "bool":
        is_checked = _require_mask(context, given, lengths, first)
        if data is not None:
            found = [
                _constant(context, places, None, length)
                for places, length in zip(data.nonzero(), lengths, strict=False)
            ]
        else:
            found = []
            for one, length in zip(positions(context, given), lengths, strict=False):
                # The mask has the length of the axis, or no positions.
                one.limit = length
                found.append(_computed(context, one, (False,), length, may_repeat=False))
        return [one._replace(is_checked=is_checked) for one in found]
    if data is not None:
        return [_constant(context, data, given, lengths[0])]
    stretches = variable.type.broadcastable
    return [_computed(context, given, stretches, lengths[0], may_repeat=given.ndim > 0)]


def _require_mask(context: Context, mask: Tensor, lengths: Sequence[Value], first: int) -> bool:
    """Check that a mask has the length of each of its axes, or is empty, by NumPy's rules.

    Returns
    -------
    bool
        Whether that took a check at run time.
    """
    builder = context.builder
    is_checked = False
    for axis, (mine, theirs) in enumerate(zip(mask.lengths, lengths, strict=False), first):
        own, length = context.length(mine), context.length(theirs)
        if own == length or builder.number(own) == 0:
            continue
        is_checked = True
        builder.check(
            builder.op(
                "or", builder.op("eq", length, own), builder.op("eq", own, builder.index(0))
            ),
            IndexError,
            f"boolean index did not match indexed array along axis {axis}; size of axis is {{0}} "
            "but size of corresponding boolean axis is {1}",
            length,
            own,
        )
    return is_checked


def _computed(
    context: Context, given: Tensor, stretches: Sequence[bool], length: Value, *, may_repeat: bool
) -> Column:
    """Return the column of an index array that is computed at run time."""
    builder = context.builder
    length = context.length(length)
    own = tuple([context.length(one) for one in given.lengths])
    is_from_front = isinstance(given, Positions)
    is_known = is_always_in_bounds(builder, given.dtype, length)
    if isinstance(given, Positions):
        is_known |= context.length(given.limit) == length
    in_bounds = None
    if not is_known:
        each = Tensor("bool", own, lambda index: is_in_bounds(builder, given.at(index), length))
        true = builder.constant("bool", True)
        in_bounds = reduced_along(context, each, range(len(own)), "and", "bool", true).at(())

    def at(index: Index) -> Value:
        return wrapped(builder, given.at(index), length)

    return Column(own, tuple(stretches), given.at if is_from_front else at, in_bounds, may_repeat)


def _constant(context: Context, data: Array, given: Tensor | None, length: Value) -> Column:
    """Return the column of a constant index array.

    Parameters
    ----------
    context
        The lowering.
    data
        The contents of the index array.
    given
        The tensor of the index array, if that is a constant of the graph.
    length
        The length of the axis.
    """
    builder = context.builder
    length = context.length(length)
    lengths = tuple([builder.index(one) for one in data.shape])
    stretches = tuple([one == 1 for one in data.shape])
    zero = builder.index(0)
    if not data.size:
        return Column(lengths, stretches, lambda _: zero, None, may_repeat=False)
    least, most = int(data.min()), int(data.max())
    if most > _MOST:
        never = builder.constant("bool", False)
        return Column(lengths, stretches, lambda _: zero, never, may_repeat=False)
    condition = builder.op(
        "and",
        is_in_bounds(builder, builder.index(most), length),
        is_in_bounds(builder, builder.index(least), length),
    )
    in_bounds = None if builder.number(condition) is True else condition
    number = builder.number(length)
    if number is not None and least < 0 and in_bounds is None:
        data = _smallest(np.where(data < 0, data.astype(np.int64) + int(number), data), data.dtype)
        given, least = None, 0
    may_repeat = np.unique(data).size < data.size or least < 0 <= most
    return Column(lengths, stretches, _reader(context, data, given, length), in_bounds, may_repeat)


def _smallest(data: Array, dtype: np.dtype[Any]) -> Array:
    """Return integers in a dtype if they fit into it."""
    cast = data.astype(dtype)
    return cast if (cast == data).all() else data


def _reader(
    context: Context, data: Array, given: Tensor | None, length: Value
) -> Callable[[Index], Value]:
    """Return a function that reads a constant index array, by arithmetic if it is a range."""
    builder = context.builder
    flat = data.reshape(-1).astype(np.int64)
    is_negative = bool((flat < 0).all())
    if data.ndim == 1 and data.size > 1 and (is_negative or bool((flat >= 0).all())):
        steps = np.diff(flat)
        if bool((steps == steps[0]).all()):
            first = builder.index(int(flat[0]))
            first = builder.op("add", length, first) if is_negative else first
            step = builder.index(int(steps[0]))
            return lambda index: builder.op("add", first, builder.op("mul", index[0], step))
    tensor = context.constant_tensor(constant(data)) if given is None else given
    if is_negative:
        return lambda index: builder.op("add", length, builder.cast(tensor.at(index), "i64"))
    if int(flat.min()) >= 0:
        return lambda index: builder.cast(tensor.at(index), "i64")
    return lambda index: wrapped(builder, tensor.at(index), length)
