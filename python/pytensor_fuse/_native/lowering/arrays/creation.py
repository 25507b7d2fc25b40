"""Ops that make arrays from numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytensor.tensor.basic import Alloc, AllocEmpty, ARange, Eye, MakeVector

from pytensor_fuse._native.lowering.registry import lower, refuses_dtypes
from pytensor_fuse._native.lowering.tensors import DTYPES, Tensor, stored
from pytensor_fuse._pytensor.ops.versions_of_ops import alloc_broadcast_message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.lowering.types import Builder, Context, Index, Node, Tensors, Value


_NEGATIVE: Final = "negative dimensions not allowed"
# Messages of PyTensor's Numba implementations.
_BROADCASTS: Final = alloc_broadcast_message()
_MISMATCH: Final = "could not broadcast input array into the shape requested by Alloc"
_NO_STEP: Final = "Maximum allowed size exceeded"


def is_length(builder: Builder, value: Value) -> bool:
    """Whether a value is known to be nonnegative, as the length of an array is."""
    number = builder.number(value)
    return value in builder.program.lengths if number is None else number >= 0


def dimensions(
    context: Context, given: Sequence[Tensor], shape: Sequence[int | None]
) -> list[Value]:
    """Return requested lengths, with a check that they are nonnegative.

    Parameters
    ----------
    context
        The lowering.
    given
        The requested lengths, as scalars.
    shape
        The lengths that are known at compile time.
    """
    builder = context.builder
    lengths = []
    for one, known in zip(given, shape, strict=True):
        length = builder.cast(one.at(()), "i64")
        if known is not None and builder.number(length) is None:
            length = builder.index(known)
        length = context.length(length)
        if not is_length(builder, length):
            is_valid = builder.op("ge", length, builder.index(0))
            builder.check(is_valid, ValueError, _NEGATIVE)
        lengths.append(length)
    return lengths


@lower.register(Alloc, refuses=refuses_dtypes)
def _alloc(op: Alloc, node: Node, context: Context, inputs: Tensors) -> Tensors:
    builder = context.builder
    given, *numbers = inputs
    value_type, out_type = node.inputs[0].type, node.outputs[0].type
    is_one = [length == 1 for length in value_type.shape]
    n_more = len(numbers) - given.ndim
    # A length that PyTensor inferred from the value may differ from the requested one.
    own = (*[None] * n_more, *[None if length == 1 else length for length in value_type.shape])
    known = [
        None if length == its else length for length, its in zip(out_type.shape, own, strict=True)
    ]
    lengths = dimensions(context, numbers, known)
    zero = builder.index(0)
    for axis in reversed(range(given.ndim)):
        if is_one[axis]:
            continue
        this, length = context.length(given.lengths[axis]), lengths[n_more + axis]
        if this != length:
            is_equal = builder.op("eq", this, length)
            is_many = builder.op("ne", this, builder.index(1))
            builder.check(builder.op("or", is_equal, is_many), ValueError, _BROADCASTS)
        lengths[n_more + axis] = context.require_equal(this, length, ValueError, _MISMATCH)
    if all(is_one):
        # A single number needs no buffer.
        value = given.at((zero,) * given.ndim)
        return [Tensor(given.dtype, lengths, lambda _: value)]

    def at(index: Index) -> Value:
        places = zip(index[n_more:], is_one, strict=True)
        return given.at(tuple([zero if one else place for place, one in places]))

    return [context.materialized(given.dtype, lengths, at)]


@lower.register(AllocEmpty, refuses=refuses_dtypes)
def _alloc_empty(op: AllocEmpty, node: Node, context: Context, inputs: Tensors) -> Tensors:
    [out] = node.outputs
    lengths = dimensions(context, inputs, out.type.shape)
    dtype = DTYPES[out.type.dtype]
    if not lengths:
        zero = context.builder.constant(dtype, 0)
        return [Tensor(dtype, (), lambda _: zero)]
    return [stored(context.builder, context.temporary(dtype, lengths))]


@lower.register(Eye, refuses=refuses_dtypes)
def _eye(op: Eye, node: Node, context: Context, inputs: Tensors) -> Tensors:
    builder = context.builder
    *sizes, shift = inputs
    dtype = DTYPES[node.outputs[0].type.dtype]
    lengths = dimensions(context, sizes, node.outputs[0].type.shape)
    offset = builder.cast(shift.at(()), "i64")
    one, zero = builder.constant(dtype, 1), builder.constant(dtype, 0)

    def at(index: Index) -> Value:
        row, column = index
        is_on = builder.op("eq", builder.op("add", row, offset), column)
        return builder.op("select", is_on, one, zero)

    return [Tensor(dtype, lengths, at)]


@lower.register(ARange, refuses=refuses_dtypes)
def _arange(op: ARange, node: Node, context: Context, inputs: Tensors) -> Tensors:
    builder = context.builder
    dtype = DTYPES[node.outputs[0].type.dtype]
    values = [one.at(()) for one in inputs]
    # Numba's range is over Python numbers here: integers, or floats of double precision.
    kind = "f64" if any(builder.dtype(value)[0] == "f" for value in values) else "i64"
    start, stop, step = [builder.cast(value, kind) for value in values]
    zero = builder.constant(kind, 0)
    builder.check(builder.op("ne", step, zero), ValueError, _NO_STEP)
    known = node.outputs[0].type.shape[0]
    length = builder.index(known) if known is not None else _steps(builder, start, stop, step)

    def at(index: Index) -> Value:
        far = builder.op("mul", builder.cast(index[0], kind), step)
        return builder.cast(builder.op("add", start, far), dtype)

    return [Tensor(dtype, (context.length(length),), at)]


def _steps(builder: Builder, start: Value, stop: Value, step: Value) -> Value:
    """Return the number of steps between two numbers."""
    if builder.dtype(step) == "f64":
        n_steps = builder.op("ceil", builder.op("div", builder.op("sub", stop, start), step))
        # NaN and huge numbers have no valid conversion to an integer.
        is_some = builder.op("gt", n_steps, builder.constant("f64", 0))
        n_steps = builder.op("select", is_some, n_steps, builder.constant("f64", 0))
        most = builder.constant("f64", 2.0**62)
        builder.check(builder.op("le", n_steps, most), ValueError, _NO_STEP)
        return builder.cast(n_steps, "i64")
    if builder.number(step) == 1:
        length = builder.op("sub", stop, start)
    else:
        length = builder.op("neg", builder.op("floordiv", builder.op("sub", start, stop), step))
    return length if is_length(builder, length) else builder.op("maximum", length, builder.index(0))


@lower.register(MakeVector, refuses=refuses_dtypes)
def _make_vector(op: MakeVector, node: Node, context: Context, inputs: Tensors) -> Tensors:
    dtype = DTYPES[node.outputs[0].type.dtype]
    return [vector_of(context, dtype, [one.at(()) for one in inputs])]


def vector_of(context: Context, dtype: str, values: Sequence[Value]) -> Tensor:
    """Return a vector of values; a load at a constant index yields the value itself."""
    builder = context.builder
    buffer = context.temporary(dtype, [builder.index(len(values))])
    for place, value in enumerate(values):
        builder.store(buffer, (builder.index(place),), builder.cast(value, dtype))
    return stored(builder, buffer)
