"""Stock PyTensor's fusion and ours, by themselves: planning, the whole pass, and what came out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType
from typing import Any
from unittest import mock

import numpy as np
import pytensor
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.features import ReplaceValidate
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.rewriting.elemwise import FusionOptimizer

import pytensor_fuse
from benchmarks.fusion.evaluation import evaluate
from benchmarks.graphs.reference import Reference
from benchmarks.measuring.results import assert_same
from pytensor_fuse import plan_fusion
from pytensor_fuse._fusion import fuse
from pytensor_fuse.reports import FusionPlan

Subgraph = tuple[tuple[Variable, ...], tuple[Variable, ...]]

with pytensor_fuse.enabled(False):
    _stock_apply = FusionOptimizer.apply


@dataclass(frozen=True)
class Tally:
    """What a graph computes in Elemwise kernels, counted without the package's own statistics."""

    nodes: int
    kernels: int
    arrays: int


def stock_plan(fgraph: FunctionGraph) -> list[Subgraph]:
    """The subgraphs that stock would fuse, by stock's own planner and nothing else of its pass.

    The planner is a closure inside ``FusionOptimizer.apply``; it is built anew from its code.
    """
    code = _nested_code(_stock_apply.__code__, "find_fuseable_subgraphs")
    values = {"fgraph": fgraph}
    unknown = set(code.co_freevars) - set(values)
    if unknown:
        raise RuntimeError(
            f"find_fuseable_subgraphs of PyTensor {pytensor.__version__} uses {sorted(unknown)}; "
            "give stock_plan their values"
        )
    cells = tuple(CellType(values[name]) for name in code.co_freevars)
    planner = FunctionType(code, _stock_apply.__globals__, closure=cells)
    return list(planner(fgraph))


def our_plan(fgraph: FunctionGraph) -> FusionPlan:
    return plan_fusion(fgraph, target="c")


def stock_pass(fgraph: FunctionGraph) -> None:
    _stock_apply(FusionOptimizer(), fgraph)


def our_pass(fgraph: FunctionGraph) -> None:
    fuse.fuse(fgraph, "benchmark")


def copy(fgraph: FunctionGraph) -> FunctionGraph:
    """A fresh copy with the one feature that the pass asks for."""
    return FunctionGraph(fgraph.inputs, fgraph.outputs, clone=True, features=[ReplaceValidate()])


def tally(fgraph: FunctionGraph) -> Tally:
    """Count kernels (any Elemwise node) and the arrays that they read and write.

    A kernel reads its distinct non-constant inputs and writes its outputs that something uses.
    """
    kernels = [node for node in fgraph.apply_nodes if isinstance(node.op, Elemwise)]
    read = sum(
        len({inp for inp in node.inputs if not isinstance(inp, Constant)}) for node in kernels
    )
    written = sum(bool(fgraph.clients[out]) for node in kernels for out in node.outputs)
    return Tally(len(fgraph.apply_nodes), len(kernels), read + written)


def is_worse(ours: Tally, stock: Tally) -> bool:
    """Whether we have more kernels than stock, or as many that move more arrays."""
    return (ours.kernels, ours.arrays) > (stock.kernels, stock.arrays)


def graph_at_fusion(reference: Reference, mode: Mode | str | None = None) -> FunctionGraph:
    """The graph as a compile hands it to the fusion pass, after the rewrites that come before."""
    seen = []

    def record(self: FusionOptimizer, fgraph: FunctionGraph) -> Any:
        seen.append(copy(fgraph))
        return _stock_apply(self, fgraph)

    inputs, outputs = reference.build()
    with pytensor_fuse.enabled(False), mock.patch.object(FusionOptimizer, "apply", record):
        pytensor.function(inputs, outputs, mode=mode)
    # Inner graphs are fused as well; the outer one is the largest.
    return max(seen, key=lambda fgraph: len(fgraph.apply_nodes))


def fused(fgraph: FunctionGraph) -> tuple[FunctionGraph, FunctionGraph]:
    """Two copies, one fused by stock and one by us."""
    stock, ours = copy(fgraph), copy(fgraph)
    stock_pass(stock)
    our_pass(ours)
    return stock, ours


def assert_same_answer(fgraph: FunctionGraph, values: Sequence[np.ndarray]) -> None:
    """Fuse two copies, and fail unless ours computes what stock's does with no worse a plan."""
    stock, ours = fused(fgraph)
    stock_tally, our_tally = tally(stock), tally(ours)
    assert not is_worse(our_tally, stock_tally), f"ours {our_tally}, stock {stock_tally}"
    assert_same(evaluate(ours, values), evaluate(stock, values))


def _nested_code(code: CodeType, name: str) -> CodeType:
    for constant in code.co_consts:
        if isinstance(constant, CodeType) and constant.co_name == name:
            return constant
    raise RuntimeError(f"PyTensor {pytensor.__version__} has no {name} in {code.co_qualname}")
