"""Sort, ArgSort and Unique."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.tensor.extra_ops import Unique
from pytensor.tensor.linalg.decomposition.lu import PivotToPermutations
from pytensor.tensor.sort import ArgSortOp, SortOp

from pytensor_fuse._native.lowering.registry import dtype_refusal, lower
from pytensor_fuse._native.lowering.reshaping import raveled
from pytensor_fuse._native.lowering.scalars.registry import known_numbers
from pytensor_fuse._native.lowering.sorting.merge_sort import new_line, sort_line
from pytensor_fuse._native.lowering.systems.lu import inverse_of
from pytensor_fuse._native.lowering.tensors import Tensor, stored

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.types import Context, Index, Node, Tensors, Value


def _axis(op: Any, node: Node) -> int | None:
    """Return the nonnegative axis of a sort if it is a constant."""
    axis = getattr(op, "axis", None)
    if axis is None:
        # In PyTensor 3.0 the axis is an input: a number, or a vector of one.
        numbers = known_numbers(node.inputs[1])
        axis = None if numbers is None else int(numbers.item())
    n_axes = node.inputs[0].type.ndim
    return None if axis is None or not -n_axes <= axis < n_axes else axis % n_axes


def _refuses(op: Any, node: Node) -> str | None:
    why = dtype_refusal(node)
    if why is None and _axis(op, node) is None:
        return "a sort along an unknown axis"
    return why


@lower.register(SortOp, refuses=_refuses)
def _sort(op: SortOp, node: Node, context: Context, inputs: Tensors) -> Tensors:
    return [_sorted(op, node, context, inputs[0], with_places=False)]


@lower.register(ArgSortOp, refuses=_refuses)
def _arg_sort(op: ArgSortOp, node: Node, context: Context, inputs: Tensors) -> Tensors:
    owner = node.inputs[0].owner
    if owner is not None and isinstance(owner.op, PivotToPermutations):
        # The permutation that sorts a permutation is its inverse.
        return [inverse_of(context, inputs[0])]
    return [_sorted(op, node, context, inputs[0], with_places=True)]


def _sorted(op: Any, node: Node, context: Context, given: Tensor, *, with_places: bool) -> Tensor:
    """Return the sorted elements along an axis, or their original positions.

    All kinds of sorts are stable: the unstable kinds leave the order of equal elements open.
    """
    builder = context.builder
    axis = _axis(op, node)
    assert axis is not None
    lengths = [context.length(length) for length in given.lengths]
    length = lengths[axis]
    others = [one for place, one in enumerate(lengths) if place != axis]
    line = new_line(context, given.dtype, length, with_places=with_places)
    result = context.temporary("i64" if with_places else given.dtype, lengths)

    def along(place: Index) -> None:
        def whole(at: Value) -> Index:
            return (*place[:axis], at, *place[axis:])

        in_order = sort_line(context, line, length, lambda at: given.at(whole(at)))
        with builder.loop(length) as loop:
            one = in_order.place(loop.index) if with_places else in_order.key(loop.index)
            builder.store(result, whole(loop.index), one)

    context.nest(others, along, unrolls=False)
    return stored(builder, result)


def _refuses_unique(op: Unique, node: Node) -> str | None:
    if op.axis is not None and node.inputs[0].type.ndim > 1:
        return "unique rows or columns"
    return dtype_refusal(node)


@lower.register(Unique, refuses=_refuses_unique)
def _unique(op: Unique, node: Node, context: Context, inputs: Tensors) -> Tensors:
    """Sort all elements, then keep the first of equal ones. NaNs are equal, as in NumPy."""
    builder = context.builder
    given = raveled(context, inputs[0])
    [length] = given.lengths
    zero, one = builder.index(0), builder.index(1)
    with_places = op.return_index or op.return_inverse
    line = new_line(context, given.dtype, length, with_places=with_places)
    in_order = sort_line(context, line, length, lambda at: given.at((at,)))
    values, firsts, starts, inverse = [
        context.temporary(dtype, [length], is_once=False)
        for dtype in (given.dtype, "i64", "i64", "i64")
    ]
    # Each element is stored behind those kept so far, and overwritten unless kept: no branch.
    with builder.loop(length) as loop:
        n_before, last = builder.carried("i64"), builder.carried(given.dtype)
        key = in_order.key(loop.index)
        is_same = builder.op("eq", key, last)
        if given.dtype[0] == "f":
            is_last_nan = builder.op("ne", last, last)
            both = builder.op("and", builder.op("ne", key, key), is_last_nan)
            is_same = builder.op("or", is_same, both)
        is_first = builder.op("eq", loop.index, zero)
        is_new = builder.op("or", builder.op("not", is_same), is_first)
        n_kept = builder.op("add", n_before, builder.cast(is_new, "i64"))
        builder.store(values, (n_before,), key, is_guarded=True)
        if op.return_counts:
            builder.store(starts, (n_before,), loop.index, is_guarded=True)
        if with_places:
            place = in_order.place(loop.index)
            builder.store(firsts, (n_before,), place, is_guarded=True)
            builder.store(inverse, (place,), builder.op("sub", n_kept, one), is_guarded=True)
        builder.carry(loop, last, builder.constant(given.dtype, False), key)
        n_unique = builder.carry(loop, n_before, zero, n_kept)

    def held(buffer: int) -> Tensor:
        dtype = builder.program.buffers[buffer].dtype
        return Tensor(dtype, (n_unique,), lambda index: builder.load(buffer, index))

    def count(index: Index) -> Value:
        start = builder.load(starts, index)
        following = builder.op("add", index[0], one)
        is_last = builder.op("eq", following, n_unique)
        at = builder.op("select", is_last, index[0], following)
        end = builder.op("select", is_last, length, builder.load(starts, (at,), is_guarded=True))
        return builder.op("sub", end, start)

    outs = [held(values)]
    if op.return_index:
        outs.append(held(firsts))
    if op.return_inverse:
        outs.append(stored(builder, inverse))
    if op.return_counts:
        outs.append(Tensor("i64", (n_unique,), count))
    return outs
