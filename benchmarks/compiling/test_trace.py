"""What a trace adds to the time of a compile."""

from __future__ import annotations

from typing import Any

import pytensor
import pytest
from pytensor.compile.mode import Mode, get_mode

from benchmarks.graphs.named import RADON, STUDENT_T, Reference, deep, large
from benchmarks.measuring.rows import Report, Row
from benchmarks.measuring.turns import interleaved
from pytensor_fuse import trace as trace_rewrites

# Rewriting alone: the Python linker compiles nothing.
MODES = {"py": Mode("py", "fast_run"), "numba": Mode("py", get_mode("NUMBA")._optimizer)}

# Hundredths are to be told, of what takes hundredths of a second to seconds.
ROUNDS = {"deep(20)": 41, "large(25)": 25, "radon": 41, STUDENT_T.name: 11}


def ops(function: Any) -> list[str]:
    return [str(node) for node in function.maker.fgraph.toposort()]


@pytest.mark.parametrize("reference", [deep(20), large(25), RADON, STUDENT_T], ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_trace(report: Report, reference: Reference, mode: str) -> None:
    def plain(inputs: Any, outputs: Any) -> Any:
        return pytensor.function(list(inputs), list(outputs), mode=MODES[mode])

    def traced(inputs: Any, outputs: Any) -> Any:
        with trace_rewrites():
            return plain(inputs, outputs)

    with trace_rewrites() as trace:
        function = plain(*reference.build())
    assert trace.calls[0].removed > 0
    assert ops(function) == ops(plain(*reference.build()))
    timings = interleaved(plain, traced, reference.build, rounds=ROUNDS[reference.name])
    what = f"compile while traced, {mode} rewrites"
    report(Row(what, reference.name, 1 / timings.ratio, ceiling=1.1))
