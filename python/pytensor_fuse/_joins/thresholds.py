"""How large joins and their streams have to be for writing them in place to pay."""

from __future__ import annotations

from typing import NamedTuple


class Thresholds(NamedTuple):
    """Sizes, in elements, below which the pass leaves things alone: see benchmarks/README.md.

    Attributes
    ----------
    min_elements
        A result of fewer elements than this is joined as fast by PyTensor.
    min_stream_elements
        So many elements of a stream cost less to copy than the part of the result costs to make.
    min_written
        Kernels that write few of the streams must write so many elements to make up for the two
        ops. If they write half of several, that saves as many allocations as these cost; in C, if
        they write one.
    min_written_in_python
        In Python the ops cost more than the arrays do, until these no longer fit the caches.
    min_interleaved
        Numba's loops over parts that are not contiguous are not vectorized. Where that counts, a
        stream has to have so many elements,
    max_short_row
        or so few in a row that they would not be vectorized in an array of their own.
    min_row
        PyTensor's C code is slow at writing single elements that lie apart, NumPy's copies are not.
    """

    min_elements: int = 512
    min_stream_elements: int = 32
    min_written: int = 1000
    min_written_in_python: int = 500_000
    min_interleaved: int = 50_000
    max_short_row: int = 3
    min_row: int = 2


DEFAULT_THRESHOLDS = Thresholds()
