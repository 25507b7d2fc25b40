"""UnravelIndex and RavelMultiIndex: conversion between flat indices and coordinates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytensor.tensor.extra_ops import RavelMultiIndex, UnravelIndex

from pytensor_fuse._native.lowering.registry import lower
from pytensor_fuse._native.lowering.scalars.registry import dtype_refusal, refuses_dtypes
from pytensor_fuse._native.lowering.tensors import scalar, stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.lowering.annotations import (
        Builder,
        Context,
        Index,
        Node,
        Tensor,
        Tensors,
        Value,
    )


# NumPy's messages, and Numba's for arrays of different shapes.
_OUTSIDE: Final = "index {0} is out of bounds for array with size {1}"
_INVALID: Final = "invalid entry in coordinates array"
_NO_ELEMENTS: Final = "cannot unravel if shape has zero entries (is empty)."
_DIFFERENT: Final = "all input arrays must have the same shape"


@lower.register(UnravelIndex, refuses=refuses_dtypes)
def _unravel_index(op: UnravelIndex, node: Node, context: Context, inputs: Tensors) -> Tensors:
    builder = context.builder
    given, shape = inputs
    lengths = _dimensions(builder, shape, len(node.outputs))
    size = context.wrapping_size(lengths)

    def coordinates(index: Index) -> list[Value]:
        flat = builder.cast(given.at(index), "i64")
        is_there = builder.op("ge", flat, builder.index(0))
        is_there = builder.op("and", is_there, builder.op("lt", flat, size))
        builder.check(is_there, ValueError, _OUTSIDE, flat, size)
        found = []
        for length in reversed(lengths) if op.order == "C" else lengths:
            found.append(builder.op("mod", flat, length))
            flat = builder.op("floordiv", flat, length)
        return found[::-1] if op.order == "C" else found

    if not given.ndim:
        return [scalar(builder, value) for value in coordinates(())]
    buffers = [context.temporary("i64", given.lengths) for _ in lengths]

    def body(index: Index) -> None:
        for buffer, value in zip(buffers, coordinates(index), strict=True):
            builder.store(buffer, index, value)

    context.nest(given.lengths, body)
    return [stored(builder, buffer) for buffer in buffers]


def _dimensions(builder: Builder, shape: Tensor, number: int) -> list[Value]:
    """Return the first lengths of a shape vector."""
    return [builder.cast(shape.at((builder.index(at),)), "i64") for at in range(number)]


def _refuses_multi(op: RavelMultiIndex, node: Node) -> str | None:
    *indices, shape = node.inputs
    if shape.type.shape != (len(indices),):
        return "coordinates in a shape with an unknown number of axes"
    if len({one.type.ndim for one in indices}) > 1:
        return "coordinates that are broadcast"
    return dtype_refusal(node)


@lower.register(RavelMultiIndex, refuses=_refuses_multi)
def _ravel_multi_index(
    op: RavelMultiIndex, node: Node, context: Context, inputs: Tensors
) -> Tensors:
    builder = context.builder
    *indices, shape = inputs
    limits = _dimensions(builder, shape, len(indices))
    lengths = [context.length(length) for length in indices[0].lengths]
    for other in indices[1:]:
        lengths = [
            context.require_equal(one, length, ValueError, _DIFFERENT)
            for one, length in zip(lengths, other.lengths, strict=True)
        ]
    if op.mode != "raise":
        for limit in limits:
            builder.check(builder.op("gt", limit, builder.index(0)), ValueError, _NO_ELEMENTS)

    def at(index: Index) -> Value:
        places = [
            _valid(builder, op.mode, builder.cast(one.at(index), "i64"), limit)
            for one, limit in zip(indices, limits, strict=True)
        ]
        return _flat(builder, op.order, places, limits)

    return [context.materialized("i64", lengths, at)]


def _valid(builder: Builder, mode: str, place: Value, limit: Value) -> Value:
    zero = builder.index(0)
    if mode == "wrap":
        return builder.op("mod", place, limit)
    if mode == "clip":
        last = builder.op("sub", limit, builder.index(1))
        return builder.op("maximum", builder.op("minimum", place, last), zero)
    is_valid = builder.op("ge", place, zero)
    is_valid = builder.op("and", is_valid, builder.op("lt", place, limit))
    builder.check(is_valid, ValueError, _INVALID)
    return place


def _flat(builder: Builder, order: str, places: Sequence[Value], limits: Sequence[Value]) -> Value:
    flat = builder.index(0)
    pairs = list(zip(places, limits, strict=True))
    for place, limit in pairs if order == "C" else reversed(pairs):
        flat = builder.op("add", builder.op("mul", flat, limit), place)
    return flat
