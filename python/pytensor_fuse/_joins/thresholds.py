"""Sizes from which it pays to write the streams of joins in place."""

from __future__ import annotations

from typing import NamedTuple


class Thresholds(NamedTuple):
    """Break-even sizes of the pass, in elements: see benchmarks/README.md.

    Attributes
    ----------
    min_elements
        PyTensor joins results with fewer elements than this as fast.
    min_stream_elements
        Streams with fewer elements than this cost less to copy than the part of the result costs to
        make.
    min_written
        The elements that kernels must write to make up for the two ops if they write few of the
        streams. Kernels that write half of several streams save as many allocations as the ops
        cost; in C, one written stream suffices.
    min_written_in_python
        The same in Python, where the ops cost more than the arrays until these no longer fit the
        caches.
    min_interleaved
        Numba's loops over parts that are not contiguous are not vectorized. If a kernel would be
        vectorized otherwise, its stream must have this many elements, unless its rows are short.
    max_short_row
        The longest short row, which would not be vectorized in a separate array, either.
    min_row
        The shortest row that kernels write in C and Python: PyTensor's C code is slow at writing
        separate single elements, unlike NumPy's copies.
    """

    min_elements: int = 512
    min_stream_elements: int = 32
    min_written: int = 1000
    min_written_in_python: int = 500_000
    min_interleaved: int = 50_000
    max_short_row: int = 3
    min_row: int = 2


DEFAULT_THRESHOLDS = Thresholds()
