"""Functions compiled with the pass over joins: its results, and other thresholds for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.compile.mode import Mode, get_mode

from pytensor_fuse._activation.passes.joins import join_context
from pytensor_fuse._joins.plans import JoinReason
from pytensor_fuse._joins.reports import explain_joins
from pytensor_fuse._joins.thresholds import Thresholds

MODES = ["NUMBA", "CVM"]
WRITTEN = JoinReason.WRITTEN
PYTHON = Mode(linker="py", optimizer="fast_run")

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
    """Make the registered pass use other thresholds."""
    before = join_context.thresholds
    join_context.thresholds = thresholds
    try:
        yield
    finally:
        join_context.thresholds = before


def always_worth_it() -> AbstractContextManager[None]:
    """Make the pass eliminate every possible join, whether it pays or not."""
    return join_thresholds(NO_THRESHOLDS)


def nodes(f, *kinds):
    return [node for node in f.maker.fgraph.toposort() if isinstance(node.op, kinds)]


def n_kernels(f):
    """Count kernels, including those that PyTensor has merged with indexing or reductions."""
    return len([n for n in nodes(f, object) if "Elemwise" in type(n.op).__name__])


def check(inputs, outputs, mode, *calls, **options):
    """Compile with and without the pass, compare results of ``calls``, return the function.

    Without the pass, Python runs the graph, rewritten for the same linker: compiling it would take
    as long as the rest of a test.
    """
    mode = get_mode(mode)
    rewriter = mode.excluding("join_buffer_elimination").optimizer
    without = pytensor.function(inputs, outputs, mode=Mode("py", rewriter), **options)
    f = pytensor.function(inputs, outputs, mode=mode, **options)
    for values in calls:
        want, result = without(*values), f(*values)
        if not isinstance(want, list):
            want, result = [want], [result]
        for expected, computed in zip(want, result, strict=True):
            assert computed.dtype == expected.dtype
            np.testing.assert_allclose(computed, expected, rtol=1e-12, equal_nan=True)
    assert n_kernels(f) == n_kernels(without)
    return f


def reasons(f):
    [report] = explain_joins(f)
    return report.streams


def rand(*shape):
    return np.random.default_rng(sum(shape)).random(shape)


def known(*shape):
    """Return an input of static shape: unknown lengths may be 1, and be broadcast."""
    return pt.tensor("known", dtype="float64", shape=shape)
