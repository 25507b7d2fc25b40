"""Identities and views: ops that neither compute nor copy elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pytensor.compile.ops import TypeCastingOp
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.basic import ScalarFromTensor, TensorFromScalar
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.extra_ops import CpuContiguous

from pytensor_fuse._native.lowering.registry import lower, refuses_dtypes
from pytensor_fuse._native.lowering.tensors import Layout, Tensor, scalar, view
from pytensor_fuse._native.program.failures import literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.lowering.types import Context, Index, Node, Tensors

# The message of PyTensor's Numba implementation.
_NOT_ONE: Final = "DimShuffle: Attempting to squeeze axes with size not equal to one"


@lower.register(TensorFromScalar, ScalarFromTensor, refuses=refuses_dtypes)
def _between_kinds(op: Any, node: Node, context: Context, inputs: Tensors) -> Tensors:
    return [scalar(context.builder, inputs[0].at(()))]


@lower.register(DimShuffle, refuses=refuses_dtypes)
def _dimshuffle(op: DimShuffle, node: Node, context: Context, inputs: Tensors) -> Tensors:
    builder, [given] = context.builder, inputs
    if tuple(op.new_order) == tuple(range(given.ndim)):
        return [given]
    one, zero = builder.index(1), builder.index(0)
    for axis in range(given.ndim):
        if axis not in op.new_order:
            length = given.lengths[axis]
            builder.check(builder.op("eq", length, one), ValueError, _NOT_ONE)
    lengths = [one if axis == "x" else given.lengths[axis] for axis in op.new_order]
    sources = [(axis, place) for place, axis in enumerate(op.new_order) if axis != "x"]

    def place(index: Index) -> Index:
        at = [zero] * given.ndim
        for axis, where in sources:
            at[axis] = index[where]
        return tuple(at)

    if not lengths:
        return [scalar(builder, given.at(place(())))]
    return [view(given, lengths, place, _shuffled(context, given, op.new_order))]


def _shuffled(context: Context, given: Tensor, order: Sequence[int | str]) -> Layout | None:
    """Return the layout of an array with permuted axes."""
    layout = given.layout
    if layout is None:
        return None
    one = context.builder.index(1)
    if any(length != one for axis, length in enumerate(given.lengths) if axis not in order):
        # The program does not know that the buffer's axis has length 1.
        return None
    axes = tuple([None if isinstance(axis, str) else layout.axes[axis] for axis in order])
    return layout._replace(axes=axes)


@lower.register(TypeCastingOp, CpuContiguous, refuses=refuses_dtypes)
def _same(op: Any, node: Node, context: Context, inputs: Tensors) -> Tensors:
    return list(inputs)


@lower.register(CheckAndRaise, refuses=refuses_dtypes)
def _check_and_raise(op: CheckAndRaise, node: Node, context: Context, inputs: Tensors) -> Tensors:
    builder = context.builder
    given, *conditions = inputs
    for condition in conditions:
        builder.check(builder.cast(condition.at(()), "bool"), op.exc_type, literal(op.msg))
    return [given]
