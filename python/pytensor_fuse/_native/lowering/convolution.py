"""Convolutions of vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pytensor.tensor.signal.conv import Convolve1d

from pytensor_fuse._native.lowering.binary_search import in_memory
from pytensor_fuse._native.lowering.registry import lower
from pytensor_fuse._native.lowering.scalars import dtype_refusal
from pytensor_fuse._native.lowering.tensors import DTYPES, stored

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply

    from pytensor_fuse._native.lowering.context import Context
    from pytensor_fuse._native.lowering.tensors import Tensor
    from pytensor_fuse._native.program.builder import Builder
    from pytensor_fuse._native.program.model import Value

# NumPy's texts.
_EMPTY: Final = ("a cannot be empty", "v cannot be empty")


def _refuses(op: Convolve1d, node: Apply[Any]) -> str | None:
    if node.outputs[0].type.dtype == "bool":
        return "a convolution of truth values"
    return dtype_refusal(node)


@lower.register(Convolve1d, refuses=_refuses)
def _convolve(
    op: Convolve1d, node: Apply[Any], context: Context, inputs: list[Tensor]
) -> list[Tensor]:
    """Add the products with each element of the kernel in turn, so that loops are over vectors."""
    builder = context.builder
    op_, zero, one = builder.op, builder.index(0), builder.index(1)
    for given, message in zip(inputs, _EMPTY, strict=False):
        is_some = op_("gt", context.length(given.lengths[0]), zero)
        builder.check(is_some, ValueError, message)
    signal, kernel = [in_memory(context, given) for given in inputs[:2]]
    dtype = DTYPES[node.outputs[0].type.dtype]
    n_signal, n_kernel = [context.length(given.lengths[0]) for given in (signal, kernel)]
    if _is_less(builder, n_signal, n_kernel):
        signal, kernel, n_signal, n_kernel = kernel, signal, n_kernel, n_signal
    is_full = builder.cast(inputs[2].at(()), "bool")
    n_full = op_("sub", op_("add", n_signal, n_kernel), one)
    # What is valid begins where the shorter one lies in the longer one as a whole.
    n_less = op_("sub", op_("minimum", n_signal, n_kernel), one)
    n_valid = op_("sub", op_("maximum", n_signal, n_kernel), n_less)
    first = op_("select", is_full, zero, n_less)
    length = op_("select", is_full, n_full, n_valid)
    result = context.temporary(dtype, [length], is_once=False)
    with builder.loop(length) as loop:
        builder.store(result, (loop.index,), builder.constant(dtype, 0))
    with builder.loop(n_kernel) as outer:
        weight = builder.cast(kernel.at((outer.index,)), dtype)
        # The result at an index has the product with the signal at the index and this.
        shift = op_("sub", first, outer.index)
        begin = op_("maximum", zero, op_("neg", shift))
        end = op_("minimum", length, op_("sub", n_signal, shift))
        with builder.loop(op_("sub", end, begin)) as inner, builder.guarding():
            place = op_("add", begin, inner.index)
            element = builder.cast(signal.at((op_("add", place, shift),)), dtype)
            term = op_("mul", element, weight)
            builder.store(result, (place,), term, "add", is_guarded=True)
    return [stored(builder, result)]


def _is_less(builder: Builder, length: Value, other: Value) -> bool:
    """Whether a length is known to be less than another one."""
    number, limit = builder.number(length), builder.number(other)
    return number is not None and limit is not None and number < limit
