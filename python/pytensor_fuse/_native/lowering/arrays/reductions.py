"""CAReduce over any axes."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, Final

from pytensor.scalar import basic as ps
from pytensor.tensor.elemwise import CAReduce
from pytensor.tensor.math import MulWithoutZeros

from pytensor_fuse._native.lowering.registry import dtype_refusal, lower
from pytensor_fuse._native.lowering.tensors import DTYPES, Tensor, scalar, stored
from pytensor_fuse._native.program.operations import identity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.lowering.types import Context, Index, Node, Tensors, Value


_COMBINERS: Final[dict[type, str]] = {
    ps.Add: "add",
    ps.Mul: "mul",
    ps.Maximum: "maximum",
    ps.Minimum: "minimum",
    ps.AND: "and",
    ps.OR: "or",
    ps.XOR: "xor",
    MulWithoutZeros: "mul",
}
# Bound of full unrolling, for reduced elements and for results in registers.
_MOST_WRITTEN_OUT: Final = 16


def combiner_of(scalar_op: Any, dtype: str) -> str:
    """Return the reduction operator of a scalar op for a dtype."""
    name = _COMBINERS[type(scalar_op)]
    if dtype == "bool":
        return {"add": "or", "mul": "and"}.get(name, name)
    return name


def _accumulator(op: CAReduce, node: Node) -> str | None:
    """Return the accumulator's dtype in programs, or None if they do not have it."""
    return DTYPES.get(getattr(op, "acc_dtype", None) or node.outputs[0].type.dtype)


def _refuses(op: CAReduce, node: Node) -> str | None:
    if type(op.scalar_op) not in _COMBINERS:
        return f"no rule for reductions by {op.scalar_op}"
    if _accumulator(op, node) is None:
        return f"an accumulator of dtype {op.acc_dtype}"
    return dtype_refusal(node)


@lower.register(CAReduce, refuses=_refuses)
def _careduce(op: CAReduce, node: Node, context: Context, inputs: Tensors) -> Tensors:
    builder, [given] = context.builder, inputs
    dtype = DTYPES[node.outputs[0].type.dtype]
    accumulator = _accumulator(op, node)
    assert accumulator is not None
    axes = tuple(range(given.ndim)) if op.axis is None else tuple(sorted(op.axis))
    if isinstance(op.scalar_op, MulWithoutZeros):
        reduced = _product_without_zeros(context, given, axes, accumulator)
    else:
        combiner = combiner_of(op.scalar_op, accumulator)
        # A sum starts from 0.0, as PyTensor's does: from -0.0, an empty sum would be -0.0.
        first = 0 if combiner == "add" else identity(combiner, accumulator)
        initial = builder.constant(accumulator, first)
        reduced = reduced_along(context, given, axes, combiner, accumulator, initial)
    if accumulator == dtype:
        return [reduced]
    return [context.materialized(dtype, reduced.lengths, context.of_dtype(reduced, dtype).at)]


def _product_without_zeros(
    context: Context, given: Tensor, axes: tuple[int, ...], dtype: str
) -> Tensor:
    """Return the products of the nonzero elements, which are 0 where all elements are 0."""
    builder = context.builder
    one, zero = builder.constant(dtype, 1), builder.constant(dtype, 0)

    def factor(index: Index) -> Value:
        element = builder.cast(given.at(index), dtype)
        return builder.op("select", builder.op("eq", element, zero), one, element)

    def is_factor(index: Index) -> Value:
        return builder.op("ne", builder.cast(given.at(index), dtype), zero)

    combiner = "and" if dtype == "bool" else "mul"
    factors = Tensor(dtype, given.lengths, factor)
    products = reduced_along(context, factors, axes, combiner, dtype, one)
    no = builder.constant("bool", False)
    are_factors = Tensor("bool", given.lengths, is_factor)
    any_factor = reduced_along(context, are_factors, axes, "or", "bool", no)
    return context.materialized(
        dtype,
        products.lengths,
        lambda index: builder.op("select", any_factor.at(index), products.at(index), zero),
    )


def reduced_along(
    context: Context, given: Tensor, axes: Sequence[int], combiner: str, dtype: str, initial: Value
) -> Tensor:
    """Return an array reduced along axes.

    The elements are visited in memory order. Results of reductions along the last axes accumulate
    in registers, and so do those with few elements along kept axes behind the reduced ones. All
    others accumulate in memory, row by row.

    Parameters
    ----------
    context
        The lowering.
    given
        The array.
    axes
        The axes of the reduction, in ascending order.
    combiner, dtype, initial
        The reduction operator, the dtype of the accumulator, and its initial value.
    """
    kept = [axis for axis in range(given.ndim) if axis not in axes]
    lengths = [context.length(length) for length in given.lengths]
    reduction = _Reduction(context, given, combiner, dtype, initial)
    if not kept:
        [value] = reduction.totals(axes, [()])
        return scalar(context.builder, value)
    outer = [axis for axis in kept if not axes or axis < axes[0]]
    inner = kept[len(outer) :]
    crossed = [axis for axis in axes if axis < kept[-1]]
    if _number_of(context, [lengths[axis] for axis in inner]) <= _MOST_WRITTEN_OUT:
        return _in_registers(context, reduction, outer, inner, axes)
    if _number_of(context, [lengths[axis] for axis in crossed]) <= _MOST_WRITTEN_OUT:
        return _in_registers(context, reduction, kept, [], axes)
    return _in_memory(context, reduction, kept, axes)


def _number_of(context: Context, lengths: Sequence[Value]) -> float:
    """Return the number of elements of axes that are all short, or infinity."""
    number = 1.0
    for length in lengths:
        number *= (
            int(context.builder.number(length) or 0) if context.is_short(length) else float("inf")
        )
    return number


class _Reduction:
    """The state of a reduction in progress: its index into the array, and its operator."""

    def __init__(
        self, context: Context, given: Tensor, combiner: str, dtype: str, initial: Value
    ) -> None:
        self.context = context
        self.given = given
        self.combiner = combiner
        self.dtype = dtype
        self.initial = initial
        self.lengths = [context.length(length) for length in given.lengths]
        self.index = [context.builder.index(0)] * given.ndim

    def go(self, axes: Sequence[int], place: Sequence[Value]) -> None:
        """Set the index along some axes."""
        for axis, at in zip(axes, place, strict=True):
            self.index[axis] = at

    def totals(
        self, left: Sequence[int], places: Sequence[Index], along: Sequence[int] = ()
    ) -> list[Value]:
        """Reduce along the remaining axes, once for each position along others."""
        builder = self.context.builder
        if not left:
            values = []
            for place in places:
                self.go(along, place)
                values.append(builder.cast(self.given.at(tuple(self.index)), self.dtype))
            return values
        axis, *following = left
        length = self.lengths[axis]
        if self._is_written_out(length):
            totals = [self.initial] * len(places)
            for number in range(int(builder.number(length) or 0)):
                self.index[axis] = builder.index(number)
                terms = self.totals(following, places, along)
                if number or self._initial_tells():
                    terms = [
                        builder.op(self.combiner, total, term)
                        for total, term in zip(totals, terms, strict=True)
                    ]
                totals = terms
            return totals
        with builder.loop(length) as loop:
            self.index[axis] = loop.index
            terms = self.totals(following, places, along)
            return [builder.reduce(loop, self.combiner, self.initial, term) for term in terms]

    def _initial_tells(self) -> bool:
        """Whether the initial value affects the first term: 0.0 + -0.0 is 0.0."""
        is_sum = self.combiner == "add" and self.dtype[0] == "f"
        return is_sum and not self.context.builder.program.reassociates

    def _is_written_out(self, length: Value) -> bool:
        context = self.context
        number = context.builder.number(length)
        if number is not None and number <= 2:
            return True
        return context.is_short(length) and context.builder.n_open_blocks > 1


def _in_registers(
    context: Context,
    reduction: _Reduction,
    outer: Sequence[int],
    inner: Sequence[int],
    axes: Sequence[int],
) -> Tensor:
    """Reduce at each outer position, for all inner positions at once."""
    builder, lengths = context.builder, reduction.lengths
    buffer = context.temporary(reduction.dtype, [lengths[axis] for axis in (*outer, *inner)])
    ranges = [range(int(builder.number(lengths[axis]) or 0)) for axis in inner]
    places = [tuple([builder.index(number) for number in place]) for place in product(*ranges)]

    def at_outer(index: Index) -> None:
        reduction.go(outer, index)
        for place, total in zip(places, reduction.totals(axes, places, inner), strict=True):
            builder.store(buffer, (*index, *place), total)

    context.nest([lengths[axis] for axis in outer], at_outer)
    return stored(builder, buffer)


def _in_memory(
    context: Context, reduction: _Reduction, kept: Sequence[int], axes: Sequence[int]
) -> Tensor:
    """Accumulate row by row in memory, in the order of the array."""
    builder, lengths = context.builder, reduction.lengths
    kept_lengths = [lengths[axis] for axis in kept]
    buffer = context.temporary(reduction.dtype, kept_lengths, is_once=False)
    context.nest(kept_lengths, lambda index: builder.store(buffer, index, reduction.initial))
    last = kept[-1] + 1
    inner = [axis for axis in axes if axis >= last]

    def combine(index: Index) -> None:
        reduction.go(range(last), index)
        [total] = reduction.totals(inner, [()])
        builder.store(buffer, [index[axis] for axis in kept], total, reduction.combiner)

    context.nest(lengths[:last], combine)
    return stored(builder, buffer)
