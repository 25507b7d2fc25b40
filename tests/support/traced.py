"""Graphs, rewriters and lookups that the tests of traces share."""

from __future__ import annotations

from typing import Any

import pytensor
import pytensor.tensor as pt
from pytensor.compile.maker import FunctionMaker
from pytensor.compile.mode import Mode
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting import basic
from pytensor.graph.rewriting.basic import (
    GraphRewriter,
    NodeRewriter,
    SequentialGraphRewriter,
    node_rewriter,
)
from pytensor.scalar.basic import Exp

from pytensor_fuse._pytensor.patching.temporary_attributes import class_tree
from pytensor_fuse._trace.records import TracedCall, TracedPass
from pytensor_fuse.reports import Trace

PYTHON = Mode("py", "fast_run")


def regression() -> tuple[list[Any], list[Any]]:
    """A log-density with gradient: a graph on which many rewriters fire."""
    x, y, beta, sigma = pt.matrix("x"), pt.vector("y"), pt.vector("beta"), pt.scalar("sigma")
    residual = (y - x @ beta) / pt.exp(sigma)
    logp = pt.sum(-0.5 * residual**2 - sigma) - 0.5 * pt.sum(beta**2) + pt.log(pt.exp(sigma))
    return [x, y, beta, sigma], [logp, *pytensor.grad(logp, [beta, sigma])]


def accumulation() -> tuple[list[Any], list[Any]]:
    """Return a Scan, whose inner graph is compiled, too."""
    x = pt.vector("x")
    total = pytensor.scan(
        lambda b, a: a * 1 + pt.exp(b),
        sequences=x,
        outputs_info=pt.zeros(()),
        return_updates=False,
    )
    return [x], [total[-1]]


GRAPHS = {"regression": regression, "accumulation": accumulation}


def compiled(graph: Any, mode: Mode = PYTHON) -> Any:
    return pytensor.function(*graph, mode=mode)


def rewrite(fgraph: FunctionGraph, *passes: Any) -> None:
    SequentialGraphRewriter(*passes).rewrite(fgraph)


def chain(n: int) -> FunctionGraph:
    """Return a chain of ``n`` nodes of exp and ``n`` of neg, alternating."""
    x = pt.vector("x")
    out = x
    for _ in range(n):
        out = -pt.exp(out)
    return FunctionGraph([x], [out], clone=False)


class Counting:
    """Makes node rewriters that count how often they are tried, and how often they change exp."""

    def __init__(self, most: int = 1000) -> None:
        self.tried = self.offered = 0
        self.most = most

    def __call__(self, fgraph: FunctionGraph, node: Any) -> Any:
        self.tried += 1
        is_exp = isinstance(getattr(node.op, "scalar_op", None), Exp)
        if not is_exp or self.offered == self.most:
            return None
        self.offered += 1
        return [pt.sin(node.inputs[0])]

    def rewriter(self, name: str, tracks: Any) -> Any:
        made = node_rewriter(tracks)(self._function())
        made.name = name
        return made

    def _function(self) -> Any:
        def run(fgraph: FunctionGraph, node: Any) -> Any:
            return self(fgraph, node)

        return run


def found(passes: Any, name: str) -> TracedPass:
    (only,) = [each for each in passes if each.name == name]
    return only


def rewriter_of(trace: Trace, name: str) -> Any:
    (only,) = [total for total in trace.rewriters if total.name == name]
    return only


def own_times(each: TracedPass | TracedCall) -> float:
    """Return the sum of the times of passes without their inner ones."""
    inner = sum(own_times(one) for one in each.inner)
    return inner + (each.own + each.requirements if isinstance(each, TracedPass) else 0.0)


def everything(each: Any) -> list[Any]:
    return [each, *(one for inner in each.inner for one in everything(inner))]


def methods() -> dict[tuple[type, str], object]:
    """Return the attributes of the classes that a trace replaces."""
    kinds = [GraphRewriter, NodeRewriter, FunctionMaker, basic.OpToRewriterTracker]
    return {
        (kind, name): value
        for base in kinds
        for kind in class_tree(base)
        for name, value in vars(kind).items()
        if callable(value) or isinstance(value, property | classmethod | staticmethod)
    }
