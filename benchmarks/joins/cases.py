"""The joins that are measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.graphs.joined import columns, few_written, rows_stacked, streams
from benchmarks.graphs.packed import packed
from benchmarks.graphs.reference import Reference

SMALL_SIZES = (1, 10, 100, 1_000, 10_000)
STREAM_COUNTS = (2, 4, 8, 16)
SMALL_PRODUCERS = ("affine", "rational", "exp", "tanh")


@dataclass(frozen=True)
class Case:
    """A graph, the compiler it is for, and the size of its arrays."""

    reference: Reference
    linker: str
    size: int

    def __str__(self) -> str:
        return f"{self.reference.name}, {self.size:,} each"


def small_cases(linker: str) -> Iterator[Case]:
    """The set on which no function may become slower by more than 3 %."""
    for producer in SMALL_PRODUCERS:
        for n_streams in STREAM_COUNTS:
            for size in SMALL_SIZES:
                yield Case(streams(producer, n_streams), linker, size)
    for producer in ("affine", "tanh"):
        for size in SMALL_SIZES:
            yield Case(streams(producer, 4, size), linker, size)


def gate_cases(linker: str) -> Iterator[Case]:
    """Joins of other kinds, of which what does not pay must be left alone."""
    for producer in ("affine", "tanh"):
        for n_streams in (2, 4, 16):
            for size in (1, 10, 100, 1_000, 10_000, 100_000):
                yield Case(few_written(producer, n_streams), linker, size)
        for size in (10, 100, 1_000, 10_000):
            yield Case(few_written(producer, 4, size), linker, size)
        for n_streams in (2, 4):
            for size in (1, 10, 100, 1_000, 10_000, 100_000):
                yield Case(rows_stacked(producer, n_streams), linker, size)
                for width in (None, 3, 100):
                    if size * (width or 1) <= 300_000:
                        yield Case(columns(producer, n_streams, width), linker, size)
    for n_streams in (2, 16):
        for size in (100_000, 1_000_000):
            if n_streams * size <= 2_000_000:
                yield Case(streams("affine", n_streams), linker, size)
    for n_rows in (20, 173, 2_000, 20_000):
        yield Case(packed(n_rows), linker, n_rows)
