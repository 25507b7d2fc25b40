"""The inner graphs of ops on arrays: which there are, what runs them and what they are given."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pytensor.compile.builders import OpFromGraph
from pytensor.compile.executor import Function
from pytensor.graph import op as graph_op
from pytensor.graph.op import HasInnerGraph
from pytensor.scalar.basic import ScalarOp
from pytensor.scan.op import Scan
from pytensor.tensor.blockwise import Blockwise

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply, Variable

# Ops that are made of graphs; 3.3 has branches that are.
GRAPH_OPS: tuple[type, ...] = (OpFromGraph, Scan)
if find_spec("pytensor.conditional"):
    GRAPH_OPS = (*GRAPH_OPS, import_module("pytensor.conditional.op").LazyIfElse)

_HAS_INNER_GRAPHS: Any = getattr(graph_op, "HasMultipleInnerGraph", HasInnerGraph)


def inner_graphs(op: Any) -> list[tuple[str, Any, Any]]:
    """Return the inner graphs of an op on arrays: name, graph, and the function that runs it.

    The graph is the one that runs: PyTensor 3.0 rewrites it when its function is made. The function
    is None where there is none yet, or where the outer one runs the graph. 3.3 has ops with several
    inner graphs.
    """
    if isinstance(op, Blockwise):
        op = op.core_op
    if isinstance(op, ScalarOp) or not isinstance(op, _HAS_INNER_GRAPHS):
        return []
    function = getattr(op, "_fn", None)
    if isinstance(function, Function):
        return [("", function.maker.fgraph, function)]
    graphs: dict[str, Any] = op.inner_graphs if hasattr(op, "inner_graphs") else {"": op.fgraph}
    return [(name, graph, None) for name, graph in graphs.items()]


def passed_inside(node: Apply[Any], graph: Any) -> dict[Variable[Any, Any], Variable[Any, Any]]:
    """Return the inputs of an inner graph that are inputs of its node, with these.

    Each time that the graph runs within a call they are the same.
    """
    op, inside = node.op, list(graph.inputs)
    if isinstance(op, Scan):
        own, outside = op.inner_non_seqs(inside), op.outer_non_seqs(node.inputs)
    elif isinstance(op, OpFromGraph):
        own, outside = inside, node.inputs
    elif isinstance(op, GRAPH_OPS):
        own, outside = inside, node.inputs[1:]
    else:
        return {}
    return dict(zip(own, outside, strict=True)) if len(own) == len(outside) else {}


def runs_once(op: object) -> bool:
    """Whether an op with inner graphs runs one of them, once."""
    return isinstance(op, GRAPH_OPS) and not isinstance(op, Scan)
