"""Kernels that are put together by hand, functions of them, and how long a call takes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor
from pytensor.compile.executor import Function
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.scalar.basic import Composite
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.rewriting.elemwise import FusionOptimizer

import pytensor_fuse
from benchmarks.measuring.turns import call_times

LINKERS = {"numba": "numba", "c": "cvm"}


def kernel(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> list[Variable]:
    """The Elemwise graph between these as one kernel."""
    scalars = FusionOptimizer.elemwise_to_scalar(inputs, outputs)
    return Elemwise(Composite(*scalars))(*inputs, return_list=True)


def ends_of(nodes: Sequence[Apply], fgraph: FunctionGraph) -> tuple[list[Variable], list[Variable]]:
    """What a kernel of these nodes reads, and what others read of it."""
    within = set(nodes)
    made = {out for node in nodes for out in node.outputs}
    inputs = list(dict.fromkeys(v for node in nodes for v in node.inputs if v not in made))
    outputs = [
        node.outputs[0]
        for node in nodes
        if any(client not in within for client, _ in fgraph.clients[node.outputs[0]])
    ]
    return inputs, outputs


def compiled_as_is(
    inputs: Sequence[Variable], outputs: Sequence[Variable], linker: str
) -> Function:
    """A function without rewrites but those that the linker itself asks for."""
    with pytensor_fuse.enabled(False):
        return pytensor.function(
            list(inputs),
            [pytensor.Out(output, borrow=True) for output in outputs],
            mode=Mode(LINKERS[linker], optimizer=None),
            on_unused_input="ignore",
            trust_input=True,
        )


def assert_same_results(functions: Sequence[Any], values: Sequence[np.ndarray]) -> None:
    expected, *others = (function(*values) for function in functions)
    for found in others:
        for got, right in zip(found, expected, strict=True):
            np.testing.assert_allclose(got, right, rtol=1e-9, atol=1e-9)


def times_of(functions: Sequence[Any], values: Sequence[np.ndarray]) -> list[float]:
    """Seconds of one call of each, the least of rounds in which they take turns.

    Those of the processor: compiled functions have one thread, and other work does not add to it.
    """
    calls = {str(number): function for number, function in enumerate(functions)}
    [once] = call_times({"0": calls["0"]}, values, 1, warm_calls=1, clock=time.thread_time)["0"]
    rounds = 15 if once < 0.05 else 4
    times = call_times(calls, values, rounds, batch=0.004, clock=time.thread_time)
    return [min(of_one) for of_one in times.values()]
