"""Auditing a function, beside compiling it."""

from __future__ import annotations

import pytensor
import pytest
from pytensor.compile.executor import Function

from benchmarks.graphs.named import Reference, deep, large
from benchmarks.measuring.rows import Report, Row
from benchmarks.measuring.turns import interleaved
from pytensor_fuse import audit
from pytensor_fuse.reports import Audit


@pytest.mark.parametrize(
    ("reference", "mode", "n_nodes"),
    [
        (deep(2_500), "FAST_COMPILE", 10_000),
        (large(400), "FAST_COMPILE", 6_000),
        (deep(1_000), "CVM", 2_000),
    ],
    ids=["deep-2500-unfused", "large-400-unfused", "deep-1000"],
)
def test_audit(report: Report, reference: Reference, mode: str, n_nodes: int) -> None:
    inputs, outputs = reference.build()
    shapes = {v: (10,) * v.type.ndim for v in inputs}

    def compiled() -> Function:
        return pytensor.function(inputs, outputs, mode=mode)

    function = compiled()
    assert len(function.maker.fgraph.apply_nodes) >= n_nodes

    def audited() -> Audit:
        return audit(function, shapes=shapes)

    found = audited()
    assert found.ops.nodes == len(function.maker.fgraph.apply_nodes)
    assert not found.memory.peak.n_unknown
    timings = interleaved(compiled, audited, rounds=3)
    report(Row("audit, compile / audit", reference.name, timings.ratio, floor=1))
