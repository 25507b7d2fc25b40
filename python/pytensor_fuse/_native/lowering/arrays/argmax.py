"""Argmax: the position of the largest element."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytensor.tensor.math import Argmax

from pytensor_fuse._native.lowering.arrays.reductions import reduced_along
from pytensor_fuse._native.lowering.registry import lower, refuses_dtypes
from pytensor_fuse._native.lowering.tensors import Tensor
from pytensor_fuse._native.program.operations import identity

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.types import Context, Index, Node, Tensors, Value


_EMPTY: Final = "attempt to get argmax of an empty sequence"


@lower.register(Argmax, refuses=refuses_dtypes)
def _argmax(op: Argmax, node: Node, context: Context, inputs: Tensors) -> Tensors:
    """Reduce to the largest element, then to its first position.

    Both reductions may be vectorized. NaN counts as the largest, and its first position wins.
    """
    builder, [given] = context.builder, inputs
    axes = tuple(range(given.ndim)) if op.axis is None else tuple(op.axis)
    kept = [axis for axis in range(given.ndim) if axis not in axes]
    lengths = [context.length(length) for length in given.lengths]
    is_none = context.is_empty([lengths[axis] for axis in axes])
    is_needless = context.is_empty([lengths[axis] for axis in kept])
    builder.check(builder.op("or", builder.op("not", is_none), is_needless), ValueError, _EMPTY)
    # Positions are counted along all reduced axes, so their number must fit.
    context.size([lengths[axis] for axis in axes])
    initial = builder.constant(given.dtype, identity("maximum", given.dtype))
    largest = reduced_along(context, given, axes, "maximum", given.dtype, initial)
    beyond = builder.index(2**63 - 1)

    def place(index: Index) -> Value:
        """Return the number of elements before one that is the largest, or a large number."""
        element = given.at(index)
        most = largest.at(tuple([index[axis] for axis in kept]))
        is_largest = builder.op("eq", element, most)
        if given.dtype[0] == "f":
            is_largest = builder.op("or", is_largest, builder.op("ne", element, element))
        before = builder.index(0)
        for axis in axes:
            before = builder.op("add", builder.op("mul", before, lengths[axis]), index[axis])
        return builder.op("select", is_largest, before, beyond)

    places = Tensor("i64", lengths, place)
    return [reduced_along(context, places, axes, "minimum", "i64", beyond)]
