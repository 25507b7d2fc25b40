"""Lowered graphs in all ways to run them: interpreted, and as machine code next to no memory."""

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
    """Return the outputs of a graph, as interpreted and as computed by machine code."""
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
    """Return the outputs of machine code whose temporary arrays lie between no memory, too.

    Their lengths must be known once those of the inputs are.
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
    """Require that a graph gives what PyTensor's Python linker does, whichever way it is run.

    Parameters
    ----------
    inputs, outputs
        The graph.
    values
        What it is given.
    rtol
        By how much floats may differ in relation to the largest.
    expected
        What is to come, where the Python linker has no answer.
    machine
        What machine code is made for.
    reassociates
        Whether sums may be taken in any order.
    forms
        Whether the graph is looked at as it is, and as Numba mode rewrites it.
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
