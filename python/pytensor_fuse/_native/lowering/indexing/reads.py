"""Reads by index: views for slices, new arrays for index arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.tensor import subtensor
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from pytensor_fuse._native.lowering.indexing.bounds import guarded
from pytensor_fuse._native.lowering.indexing.selection import selection_of
from pytensor_fuse._native.lowering.registry import lower, refuses_dtypes
from pytensor_fuse._native.lowering.tensors import Tensor, scalar, stored

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor_fuse._native.lowering.indexing.selection import Selection
    from pytensor_fuse._native.lowering.types import Context, Index, Node, Tensors, Value

# PyTensor 3.0 has a separate op for one index vector.
_GATHERS = tuple(
    getattr(subtensor, name)
    for name in ("AdvancedSubtensor", "AdvancedSubtensor1")
    if hasattr(subtensor, name)
)


@lower.register(Subtensor, refuses=refuses_dtypes)
def _subtensor(op: Subtensor, node: Node, context: Context, inputs: Tensors) -> Sequence[Tensor]:
    base = inputs[0]
    selection = selection_of(context, node, inputs, 1)
    if selection.is_all:
        return [base]
    read = reader(context, base, selection)
    if not selection.lengths:
        return [scalar(context.builder, read(selection.at(())))]
    return [Tensor(base.dtype, selection.lengths, lambda index: read(selection.at(index)))]


@lower.register(*_GATHERS, refuses=refuses_dtypes)
def _advanced_subtensor(
    op: AdvancedSubtensor, node: Node, context: Context, inputs: Tensors
) -> Sequence[Tensor]:
    builder, base = context.builder, inputs[0]
    selection = selection_of(context, node, inputs, 1)
    read = reader(context, base, selection)
    if not selection.lengths:
        return [scalar(builder, read(selection.at(())))]
    buffer = context.temporary(base.dtype, selection.lengths)
    selection.nest(lambda index, place: builder.store(buffer, index, read(place)))
    return [stored(builder, buffer)]


def reader(context: Context, base: Tensor, selection: Selection) -> Callable[[Index], Value]:
    """Return a function that reads the base of a selection at a position."""
    if not selection.is_guarded:
        return base.at
    return lambda place: guarded(context.builder, base, place)
