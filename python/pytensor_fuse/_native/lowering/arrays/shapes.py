"""Ops that read, assert or change the shape of an array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pytensor.tensor.shape import Reshape, Shape, Shape_i, SpecifyShape
from pytensor.tensor.type_other import NoneTypeT

from pytensor_fuse._native.lowering.arrays.creation import is_length, vector_of
from pytensor_fuse._native.lowering.registry import dtype_refusal, lower, refuses_dtypes
from pytensor_fuse._native.lowering.reshaping import product, reshaped
from pytensor_fuse._native.lowering.tensors import DTYPES, Tensor, scalar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.lowering.types import Context, Node, Tensors, Value


# Messages of Numba's reshape.
_OTHER_SIZE: Final = "total size of new array must be unchanged"
_MANY_NEGATIVE: Final = "multiple negative shape values"


@lower.register(Shape, refuses=refuses_dtypes)
def _shape(op: Shape, node: Node, context: Context, inputs: Tensors) -> Tensors:
    lengths = [context.length(length) for length in inputs[0].lengths]
    return [vector_of(context, "i64", lengths)]


@lower.register(Shape_i, refuses=refuses_dtypes)
def _shape_i(op: Shape_i, node: Node, context: Context, inputs: Tensors) -> Tensors:
    return [scalar(context.builder, context.length(inputs[0].lengths[op.i]))]


def _specify_refusal(op: SpecifyShape, node: Node) -> str | None:
    dtype = getattr(node.inputs[0].type, "dtype", None)
    return None if dtype in DTYPES else f"no dtype {dtype}"


@lower.register(SpecifyShape, refuses=_specify_refusal)
def _specify_shape(op: SpecifyShape, node: Node, context: Context, inputs: Tensors) -> Tensors:
    builder = context.builder
    given, *shape = inputs
    lengths = list(given.lengths)
    for axis, (variable, expected) in enumerate(zip(node.inputs[1:], shape, strict=True)):
        if not isinstance(variable.type, NoneTypeT):
            lengths[axis] = context.require_equal(
                lengths[axis],
                builder.cast(expected.at(()), "i64"),
                AssertionError,
                f"SpecifyShape: dim {axis} of input has shape {{0}}, expected {{1}}.",
            )
    return [Tensor(given.dtype, lengths, given.at, given.buffer, layout=given.layout)]


# Reshape


def _shape_refusal(op: Any, node: Node) -> str | None:
    if node.inputs[1].type.shape[0] is None:
        return "a shape with an unknown number of axes"
    return dtype_refusal(node)


@lower.register(Reshape, refuses=_shape_refusal)
def _reshape(op: Reshape, node: Node, context: Context, inputs: Tensors) -> Tensors:
    given, shape = inputs
    wanted = _wanted(context, shape, node.outputs[0].type.shape)
    lengths = _new_lengths(context, given, wanted)
    if not lengths:
        zero = context.builder.index(0)
        return [scalar(context.builder, given.at((zero,) * given.ndim))]
    return [reshaped(context, given, lengths)]


def _wanted(context: Context, shape: Tensor, known: Sequence[int | None]) -> list[Value]:
    """Return the lengths in a shape vector; negative ones are to be inferred."""
    builder = context.builder
    zero = builder.index(0)
    lengths = []
    for axis, length in enumerate(known):
        wanted = builder.cast(shape.at((builder.index(axis),)), "i64")
        # A static length of 0 is ignored: PyTensor may have inferred it wrongly by a division.
        if length:
            if builder.number(wanted) is None:
                # PyTensor may have inferred it from the size alone, whatever the shape vector says.
                is_it = builder.op("eq", wanted, builder.index(length))
                is_open = builder.op("lt", wanted, zero)
                builder.check(builder.op("or", is_it, is_open), ValueError, _OTHER_SIZE)
            wanted = builder.index(length)
        lengths.append(wanted)
    return lengths


def _new_lengths(context: Context, given: Tensor, wanted: Sequence[Value]) -> list[Value]:
    """Return the lengths of a new shape, with a check that it preserves the size."""
    builder = context.builder
    wanted = [context.length(length) for length in wanted]
    old = [context.length(length) for length in given.lengths]
    unknown = [axis for axis, length in enumerate(wanted) if not is_length(builder, length)]
    if not unknown:
        _check_size(context, old, wanted)
        return list(wanted)
    if len(unknown) == 1 and builder.number(wanted[unknown[0]]) is not None:
        [axis] = unknown
        others = [*wanted[:axis], *wanted[axis + 1 :]]
        found = _quotient(context, old, others)
        if found is not None:
            return [*wanted[:axis], found, *wanted[axis + 1 :]]
    return _lengths_at_run_time(context, old, wanted)


def _quotient(context: Context, old: Sequence[Value], others: Sequence[Value]) -> Value | None:
    """Return the inferred length as a product of known ones, or None if that takes a division."""
    builder = context.builder
    number, lengths = product(context, old)
    divisor, divisors = product(context, others)
    if divisors - lengths or not divisor or number % divisor:
        return None
    left = lengths - divisors
    factors = [builder.index(number // divisor)] if number != divisor or not left else []
    return context.size([*left.elements(), *factors])


def _lengths_at_run_time(
    context: Context, old: Sequence[Value], wanted: Sequence[Value]
) -> list[Value]:
    """Return the lengths of a shape, one of which may turn out negative when the code runs."""
    builder = context.builder
    zero, one = builder.index(0), builder.index(1)
    is_negative = [builder.op("lt", length, zero) for length in wanted]
    ones = (builder.op("select", condition, one, zero) for condition in is_negative)
    n_negative = context.folded("add", zero, ones)
    builder.check(builder.op("le", n_negative, one), ValueError, _MANY_NEGATIVE)
    # A product that wraps around fails the comparison of sizes below.
    known = context.wrapping_size(
        [
            builder.op("select", condition, one, length)
            for condition, length in zip(is_negative, wanted, strict=True)
        ]
    )
    left = builder.op("floordiv", context.size(old), known)
    lengths = [
        builder.op("select", condition, left, length)
        for condition, length in zip(is_negative, wanted, strict=True)
    ]
    _check_size(context, old, lengths)
    return lengths


def _check_size(context: Context, old: Sequence[Value], new: Sequence[Value]) -> None:
    """Check that two shapes have the same number of elements."""
    builder = context.builder
    if product(context, old) == product(context, new):
        return
    is_equal = builder.op("eq", context.wrapping_size(new), context.size(old))
    builder.check(builder.op("and", context.fits(new), is_equal), ValueError, _OTHER_SIZE)
