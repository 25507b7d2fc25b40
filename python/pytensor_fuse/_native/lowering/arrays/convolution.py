"""Convolutions of vectors and matrices, as sums of products."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from pytensor.tensor.signal.conv import Convolve1d, Convolve2d

from pytensor_fuse._native.lowering.registry import dtype_refusal, lower
from pytensor_fuse._native.lowering.sorting.binary_search import in_memory
from pytensor_fuse._native.lowering.tensors import DTYPES, stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.lowering.types import (
        BufferId,
        Builder,
        Context,
        Index,
        Node,
        Tensor,
        Tensors,
        Value,
    )


# Messages of NumPy and SciPy.
_EMPTY: Final = ("a cannot be empty", "v cannot be empty")
_NEITHER: Final = "For 'valid' mode, one must be at least as large as the other in every dimension"
# For larger kernels a Fourier transform is faster, and SciPy would use one.
_MOST_WEIGHTS: Final = 400


def _refuses(op: Any, node: Node) -> str | None:
    if node.outputs[0].type.dtype == "bool":
        return "a convolution of truth values"
    return dtype_refusal(node)


def _refuses_matrices(op: Convolve2d, node: Node) -> str | None:
    shapes = [one.type.shape for one in node.inputs[:2]]
    least = min([math.prod(shape) for shape in shapes if None not in shape], default=math.inf)
    if op.method == "fft" or (op.method != "direct" and least > _MOST_WEIGHTS):
        return "a convolution for which a Fourier transform may be faster"
    return _refuses(op, node)


@lower.register(Convolve1d, refuses=_refuses)
@lower.register(Convolve2d, refuses=_refuses_matrices)
def _convolve(
    op: Convolve1d | Convolve2d, node: Node, context: Context, inputs: Tensors
) -> Tensors:
    """Accumulate the products with one kernel element at a time, so that inner loops vectorize."""
    builder = context.builder
    do, zero, one = builder.op, builder.index(0), builder.index(1)
    for given, message in zip(inputs, _EMPTY, strict=False):
        for length in given.lengths:
            builder.check(do("gt", context.length(length), zero), ValueError, message)
    signal, kernel = [in_memory(context, given) for given in inputs[:2]]
    if _known_size(builder, signal) < _known_size(builder, kernel):
        signal, kernel = kernel, signal
    is_full = builder.cast(inputs[2].at(()), "bool")
    n_signal, n_kernel = [
        [context.length(length) for length in given.lengths] for given in (signal, kernel)
    ]
    if len(n_signal) > 1:
        _require_larger(builder, is_full, n_signal, n_kernel)
    # Valid results begin where the shorter operand lies within the longer one as a whole.
    first, lengths = [], []
    for length, other in zip(n_signal, n_kernel, strict=True):
        n_less = do("sub", do("minimum", length, other), one)
        n_valid = do("sub", do("maximum", length, other), n_less)
        n_full = do("sub", do("add", length, other), one)
        first.append(do("select", is_full, zero, n_less))
        lengths.append(do("select", is_full, n_full, n_valid))
    context.size(lengths)
    dtype = DTYPES[node.outputs[0].type.dtype]
    result = context.temporary(dtype, lengths, is_once=False)
    nothing = builder.constant(dtype, 0)
    context.nest(lengths, lambda index: builder.store(result, index, nothing, is_guarded=True))

    def at_weight(index: Index) -> None:
        if len(index) < len(n_kernel):
            with builder.loop(n_kernel[len(index)]) as loop:
                at_weight((*index, loop.index))
            return
        weight = builder.cast(kernel.at(index), dtype)
        # The product belongs to the result at an index and the signal at that index plus the
        # shifts.
        shifts = [do("sub", begin, place) for begin, place in zip(first, index, strict=True)]
        _add(builder, result, signal, weight, shifts)

    at_weight(())
    return [stored(builder, result)]


def _add(
    builder: Builder, result: BufferId, signal: Tensor, weight: Value, shifts: Sequence[Value]
) -> None:
    """Add the products of a signal and a weight, as far as the shifted signal reaches."""
    do, zero = builder.op, builder.index(0)
    about = builder.program.buffers[result]

    def run(place: Index, source: Index) -> None:
        axis = len(place)
        if axis == len(shifts):
            term = do("mul", builder.cast(signal.at(source), about.dtype), weight)
            builder.store(result, place, term, "add", is_guarded=True)
            return
        begin = do("maximum", zero, do("neg", shifts[axis]))
        end = do("minimum", about.lengths[axis], do("sub", signal.lengths[axis], shifts[axis]))
        with builder.loop(do("sub", end, begin)) as loop:
            at = do("add", begin, loop.index)
            run((*place, at), (*source, do("add", at, shifts[axis])))

    with builder.guarding():
        run((), ())


def _require_larger(
    builder: Builder, is_full: Value, lengths: Sequence[Value], others: Sequence[Value]
) -> None:
    """Require that one array is at least as long as the other along each axis."""
    is_larger = is_smaller = builder.constant("bool", True)
    for length, other in zip(lengths, others, strict=True):
        is_larger = builder.op("and", is_larger, builder.op("ge", length, other))
        is_smaller = builder.op("and", is_smaller, builder.op("le", length, other))
    is_either = builder.op("or", is_full, builder.op("or", is_larger, is_smaller))
    builder.check(is_either, ValueError, _NEITHER)


def _known_size(builder: Builder, given: Tensor) -> float:
    numbers = [builder.number(length) for length in given.lengths]
    return math.prod([math.inf if number is None else number for number in numbers])
