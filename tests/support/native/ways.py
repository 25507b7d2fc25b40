"""Lowered graphs, interpreted and as machine code with guarded memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pytensor_fuse._native.passes.fusion import fused
from pytensor_fuse._native.passes.rewrite import rewritten
from pytensor_fuse._native.program.interpret import interpret
from support.native.lowering import (
    PYTHON,
    lowered,
    raw_graph,
    require_near,
    require_same,
    rewritten_graph,
    stock,
)
from support.native.machine import (
    MACHINES,
    apart,
    compiled,
    run_code,
    with_known_lengths,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.graph.basic import Variable
    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._native.passes.placement import Placement
    from pytensor_fuse._native.program.model import Program


def ways(
    fgraph: FunctionGraph, values: Sequence[Any], machine: str, *, reassociates: bool
) -> list[list[np.ndarray]]:
    """Return the outputs of a graph, from the interpreter and from machine code."""
    program, constants, _ = lowered(fgraph, reassociates=reassociates)
    given = [
        np.array(value, dtype=one.type.dtype, order="C")
        for value, one in zip(values, fgraph.inputs, strict=True)
    ]
    code = compiled(fused(rewritten(program)), MACHINES[machine])
    found = [interpret(program, [one.copy() for one in given], constants)]
    for at_end in (True, False):
        own = [one.copy() for one in given]
        found.append(run_code(code, own, constants, at_end=at_end))
        for one, before in zip(own, given, strict=True):
            require_same(one, before, "an input afterwards")
    return found


def ways_apart(
    fgraph: FunctionGraph, values: Sequence[Any], machine: str
) -> list[list[np.ndarray]]:
    """Return the outputs of machine code whose temporary arrays are guarded, too.

    Their lengths must follow from those of the inputs.
    """
    program, constants, *_ = lowered(fgraph, reassociates=True)
    given = [
        np.array(value, dtype=one.type.dtype, order="C")
        for value, one in zip(values, fgraph.inputs, strict=True)
    ]
    known = rewritten(with_known_lengths(fused(rewritten(program)), given))
    found = []
    for at_end in (True, False):
        forbidden: list[tuple[int, int]] = []

        def place(
            program: Program,
            at_end: bool = at_end,
            forbidden: list[tuple[int, int]] = forbidden,
        ) -> Placement:
            placement, pages = apart(program, at_end=at_end)
            forbidden.extend(pages)
            return placement

        code = compiled(known, MACHINES[machine], place=place)
        code = code._replace(forbidden=tuple(forbidden))
        found.append(run_code(code, given, constants, at_end=at_end))
    return found


def check_ways(
    inputs: Sequence[Variable],
    outputs: Sequence[Variable],
    values: Sequence[Any],
    *,
    rtol: float,
    expected: Sequence[np.ndarray] | None = None,
    machine: str = "512",
    reassociates: bool = True,
    forms: Sequence[str] = ("raw", "rewritten"),
) -> None:
    """Require that all ways to run a graph agree with PyTensor's Python linker.

    Parameters
    ----------
    inputs, outputs
        The graph.
    values
        Values of the inputs.
    rtol
        The tolerance of floats, relative to the largest.
    expected
        The expected results, if the Python linker has none.
    machine
        The target of the machine code.
    reassociates
        Whether sums may be taken in any order.
    forms
        Whether to test the graph as it is, and as Numba mode rewrites it.
    """
    if expected is None:
        with np.errstate(all="ignore"):
            expected = stock(inputs, outputs, values, PYTHON)
    for form in forms:
        fgraph = {"raw": raw_graph, "rewritten": rewritten_graph}[form](inputs, outputs)
        for outs in ways(fgraph, values, machine, reassociates=reassociates):
            for at, (one, other) in enumerate(zip(outs, expected, strict=True)):
                if other.dtype.kind == "f":
                    require_near(one, other, f"output {at}", rtol)
                else:
                    require_same(one, other, f"output {at}")
