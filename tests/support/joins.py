"""Other thresholds for the pass over joins: what it takes, whether it pays or not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from pytensor_fuse._activation.registration import join_context
from pytensor_fuse._joins.thresholds import Thresholds

NO_THRESHOLDS = Thresholds(
    min_elements=0,
    min_stream_elements=0,
    min_written=0,
    min_written_in_python=0,
    min_interleaved=0,
    min_row=0,
)


@contextmanager
def join_thresholds(thresholds: Thresholds) -> Iterator[None]:
    """Let the registered pass decide by other thresholds."""
    before = join_context.thresholds
    join_context.thresholds = thresholds
    try:
        yield
    finally:
        join_context.thresholds = before


def always_worth_it() -> AbstractContextManager[None]:
    """Let the rewrite take whatever it can, whether it pays or not."""
    return join_thresholds(NO_THRESHOLDS)
