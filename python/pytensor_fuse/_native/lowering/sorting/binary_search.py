"""Binary search (searchsorted)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from pytensor.tensor.extra_ops import SearchsortedOp

from pytensor_fuse._native.lowering.registry import lower, refuses_dtypes
from pytensor_fuse._native.lowering.reshaping import raveled, reshaped
from pytensor_fuse._native.lowering.tensors import DTYPES, scalar, stored

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor_fuse._native.lowering.types import (
        BufferId,
        Builder,
        Context,
        Loop,
        Node,
        Tensor,
        Tensors,
        Value,
    )


# The logarithm of a bound on the length of a vector.
_MOST_STEPS: Final = 62
# A block of numbers and their positions fits into the first-level cache.
_BLOCK: Final = 512
# NumPy's messages.
_OTHER_SORTER: Final = "sorter.size must equal a.size"
_NO_PLACE: Final = "Sorter index out of range."


@lower.register(SearchsortedOp, refuses=refuses_dtypes)
def _search_sorted(op: SearchsortedOp, node: Node, context: Context, inputs: Tensors) -> Tensors:
    builder = context.builder
    line, wanted = [in_memory(context, one) for one in inputs[:2]]
    numpy_dtypes = [variable.type.dtype for variable in node.inputs[:2]]
    dtype = DTYPES[str(np.result_type(*numpy_dtypes))]
    length = context.length(line.lengths[0])
    place: Callable[[Value], Value] | None = None
    if len(inputs) == 3:
        sorter = inputs[2]
        context.require_equal(sorter.lengths[0], length, ValueError, _OTHER_SORTER)

        def place(at: Value) -> Value:
            found = builder.cast(sorter.at((at,)), "i64")
            is_there = builder.op("ge", found, builder.index(0))
            is_there = builder.op("and", is_there, builder.op("lt", found, length))
            builder.check(is_there, ValueError, _NO_PLACE)
            return found

    def element(at: Value) -> Value:
        with builder.guarding():
            return builder.cast(line.at((at if place is None else place(at),)), dtype)

    def comes_before(at: Value, number: Value) -> Value:
        return _comes_before(builder, element(at), number, is_right=op.side == "right")

    if not wanted.ndim:
        number = builder.cast(wanted.at(()), dtype)
        return [scalar(builder, place_in(builder, length, lambda at: comes_before(at, number)))]
    numbers = raveled(context, wanted)
    found = context.temporary("i64", numbers.lengths, is_once=False)

    def settle(at: Value, half: Value) -> None:
        """Keep the half of the remaining range that contains the position of one number."""
        before = builder.load(found, (at,), is_guarded=True)
        with builder.guarding():
            number = builder.cast(numbers.at((at,)), dtype)
        step = _step(builder, half, comes_before(_middle(builder, before, half), number))
        builder.store(found, (at,), builder.op("add", before, step), is_guarded=True)

    _settle_blocks(context, found, length, settle)
    return [reshaped(context, stored(builder, found), wanted.lengths)]


def _settle_blocks(
    context: Context, found: BufferId, length: Value, settle: Callable[[Value, Value], None]
) -> None:
    """Halve the remaining ranges of a block of numbers together, since all have the same length.

    Steps for different numbers are independent, and may be vectorized.
    """
    builder = context.builder
    op, zero, block = builder.op, builder.index(0), builder.index(_BLOCK)
    [size] = builder.program.buffers[found].lengths
    with builder.loop(size) as loop:
        builder.store(found, (loop.index,), zero)
    n_blocks = op("floordiv", op("add", size, builder.index(_BLOCK - 1)), block)
    with builder.loop(n_blocks) as blocks:
        begin = op("mul", blocks.index, block)
        n_here = op("minimum", block, op("sub", size, begin))
        with builder.loop(_most_steps(builder, length)) as steps:
            n_left = builder.carried("i64")
            half = _half(builder, n_left)
            with builder.loop(n_here) as loop:
                settle(op("add", begin, loop.index), half)
            _go_on(builder, steps, n_left, length, half)


def in_memory(context: Context, given: Tensor) -> Tensor:
    """Return an array whose elements are loaded instead of computed on each read."""
    if given.layout is not None or given.data is not None or given.ndim == 0:
        return given
    return stored(context.builder, context.copied(given))


def place_in(builder: Builder, length: Value, comes_before: Callable[[Value], Value]) -> Value:
    """Return the number of elements of a sorted vector that satisfy a monotonic predicate.

    Parameters
    ----------
    builder
        The builder of the program.
    length
        The number of elements.
    comes_before
        Returns whether an element, given by its position, comes before the number, as do all
        earlier ones.
    """
    with builder.loop(_most_steps(builder, length)) as loop:
        found, n_left = builder.carried("i64"), builder.carried("i64")
        half = _half(builder, n_left)
        step = _step(builder, half, comes_before(_middle(builder, found, half)))
        _go_on(builder, loop, n_left, length, half)
        return builder.carry(loop, found, builder.index(0), builder.op("add", found, step))


def _most_steps(builder: Builder, length: Value) -> Value:
    is_none = builder.op("eq", length, builder.index(0))
    return builder.op("select", is_none, builder.index(0), builder.index(_MOST_STEPS))


def _half(builder: Builder, n_left: Value) -> Value:
    one = builder.index(1)
    return builder.op("shr", builder.op("add", n_left, one), one)


def _go_on(builder: Builder, loop: Loop, n_left: Value, length: Value, half: Value) -> None:
    """Continue a search loop on the smaller half until the range is empty."""
    fewer = builder.op("sub", n_left, half)
    loop.until = builder.op("eq", fewer, builder.index(0))
    builder.carry(loop, n_left, length, fewer)


def _middle(builder: Builder, found: Value, half: Value) -> Value:
    return builder.op("sub", builder.op("add", found, half), builder.index(1))


def _step(builder: Builder, half: Value, is_before: Value) -> Value:
    """Return the number of further elements that come before: by a mask instead of a branch."""
    return builder.op("and", half, builder.op("neg", builder.cast(is_before, "i64")))


def _comes_before(builder: Builder, element: Value, number: Value, *, is_right: bool) -> Value:
    """Return whether an element comes before a number; NaN comes last."""
    found = builder.op("le" if is_right else "lt", element, number)
    if builder.dtype(number)[0] != "f":
        return found
    is_nan = builder.op("ne", number, number)
    if not is_right:
        is_nan = builder.op("and", is_nan, builder.op("eq", element, element))
    return builder.op("or", found, is_nan)
