"""Streams that are joined, side by side or one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from benchmarks.graphs.reference import GraphIO, Reference, random_numbers


def affine(x: Variable) -> Variable:
    """A stream that costs no more than the memory it moves."""
    return x * 2 + 1


def polynomial(x: Variable) -> Variable:
    """A stream of a dozen cheap operations per element."""
    return reduce(lambda out, c: out * x + c, (0.5, -1.5, 0.25, 2.0, -0.125, 1.0), x)


def rational(x: Variable) -> Variable:
    """A stream whose divisions take longer than its memory."""
    return (x + 2) / (1 + x * x)


# From the cheapest producer of a stream to the dearest.
PRODUCERS: dict[str, Callable[[Variable], Variable]] = {
    "affine": affine,
    "polynomial": polynomial,
    "rational": rational,
    "exp": pt.exp,
    "tanh": pt.tanh,
}


def streams(producer: str, n_streams: int, length: int | None = None) -> Reference:
    """Streams of vectors, joined; ``length`` is the static one of each vector, if known.

    The size of the values is the length of each stream, and must be the static one.
    """
    make = PRODUCERS[producer]
    return _of_arrays(
        f"{n_streams} x {producer}",
        n_streams,
        lambda xs: pt.concatenate([make(x) for x in xs]),
        length=length,
    )


def few_written(producer: str, n_streams: int, length: int | None = None) -> Reference:
    """One stream that a kernel computes, joined with arguments as they are."""
    middle = n_streams // 2

    def join(xs: Sequence[Variable]) -> Variable:
        computed = PRODUCERS[producer](xs[middle])
        return pt.concatenate([*xs[:middle], computed, *xs[middle + 1 :]])

    return _of_arrays(f"{producer} among {n_streams}", n_streams, join, length=length)


def columns(producer: str, n_streams: int, width: int | None) -> Reference:
    """Streams of matrices of that many columns joined along axis 1; stacked vectors if None.

    The size is the number of rows.
    """
    if width is None:
        return rows_stacked(producer, n_streams, axis=1)
    make = PRODUCERS[producer]
    return _of_arrays(
        f"{n_streams} x {producer} of {width} columns, axis 1",
        n_streams,
        lambda xs: pt.concatenate([make(x) for x in xs], axis=1),
        width=width,
    )


def rows_stacked(producer: str, n_streams: int, *, axis: int = 0) -> Reference:
    """Streams of vectors stacked along an axis."""
    make = PRODUCERS[producer]
    return _of_arrays(
        f"{n_streams} x {producer} stacked, axis {axis}",
        n_streams,
        lambda xs: pt.stack([make(x) for x in xs], axis=axis),
    )


def padded_affine(length: int | None) -> Reference:
    """A kernel's result written into a vector, between two zeros."""
    end = -1 if length is None else 1 + length
    return _of_arrays(
        "padded affine",
        1,
        lambda xs: pt.zeros(xs[0].shape[0] + 2)[1:end].set(affine(xs[0])),
        length=length,
    )


def _of_arrays(
    name: str,
    n_arrays: int,
    join: Callable[[Sequence[Variable]], Variable],
    *,
    length: int | None = None,
    width: int | None = None,
) -> Reference:
    """What is joined of vectors; of matrices with that many columns if there is a width."""
    shape = (length,) if width is None else (None, None)

    def build() -> GraphIO:
        xs = [pt.tensor(f"x{i}", dtype="float64", shape=shape) for i in range(n_arrays)]
        return xs, [join(xs)]

    def values(size: int) -> list[np.ndarray]:
        rng = random_numbers()
        return [rng.normal(size=size if width is None else (size, width)) for _ in range(n_arrays)]

    return Reference(name if length is None else f"{name}, static", build, values)
