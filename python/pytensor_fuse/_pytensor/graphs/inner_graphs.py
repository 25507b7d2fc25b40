"""The inner graphs of ops: which ones there are, the functions that run them, their inputs."""

from __future__ import annotations

import copy
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from pytensor.compile.builders import OpFromGraph
from pytensor.compile.executor import Function
from pytensor.graph import op as graph_op
from pytensor.graph.basic import Constant
from pytensor.graph.fg import FrozenFunctionGraph, FunctionGraph
from pytensor.graph.op import HasInnerGraph, Op
from pytensor.scalar.basic import ScalarOp
from pytensor.scan.op import Scan
from pytensor.tensor.blockwise import Blockwise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pytensor.graph.basic import Apply, Variable

# Ops that contain graphs; in 3.3 also branches of a condition.
GRAPH_OPS: tuple[type, ...] = (OpFromGraph, Scan)
if find_spec("pytensor.conditional"):
    GRAPH_OPS = (*GRAPH_OPS, import_module("pytensor.conditional.op").LazyIfElse)

_HAS_INNER_GRAPHS: Any = getattr(graph_op, "HasMultipleInnerGraph", HasInnerGraph)

# The attributes in which ops store compiled inner graphs and related data, and their values before
# anything is compiled.
_COMPILED: dict[str, Any] = {
    "_fn": lambda: None,
    "_fn_wrapped": lambda: None,
    # Used by gradients.
    "_lop_op_cache": dict,
    "_rop_op_cache": lambda: None,
}


class _Class(NamedTuple):
    """Properties of a class of ops; looked up for each op of each graph."""

    is_op_on_arrays: bool
    has_graphs: bool
    has_one_graph: bool
    holds_ops: bool


def _class_of(class_: type) -> _Class:
    # `issubclass` with an abstract class would query each of its hundreds of subclasses.
    bases = class_.__mro__
    is_op = Op in bases and ScalarOp not in bases
    several, one = _HAS_INNER_GRAPHS in bases, HasInnerGraph in bases
    # Ops that apply another op along further axes store it under this name.
    holds = (several and not one) or "core_op" in (getattr(class_, "__props__", None) or ())
    return _Class(is_op, several, one, holds)


_class: Callable[[type], _Class] = lru_cache(1024)(_class_of)


def held_ops(op: Any) -> dict[str, Any]:
    """Return the ops on arrays that an op holds and runs as parts of itself, by attribute.

    Examples are the core op of a Blockwise and the branches of a condition. Ops that an op with a
    single graph holds compute gradients.
    """
    if not _class(type(op)).holds_ops:
        return {}
    attributes = vars(op).items()
    return {name: one for name, one in attributes if _class(type(one)).is_op_on_arrays}


def has_inner_graphs(op: object) -> bool:
    """Whether an op has inner graphs, of scalars or of arrays."""
    return _class(type(op)).has_graphs


def own_graphs(op: Any) -> list[Any]:
    """Return the inner graphs of an op, of scalars too, without those of ops that it holds."""
    known = _class(type(op))
    if known.has_one_graph:
        return [op.fgraph]
    if not known.has_graphs:
        return []
    others = [id(graph) for one in held_ops(op).values() for graph in own_graphs(one)]
    return [graph for graph in op.inner_graphs.values() if id(graph) not in others]


def graphs_of_arrays(op: Any) -> list[Any]:
    """Return the inner graphs of an op on arrays and of the ops that it holds, without nested ones.

    Graphs of scalars are omitted: nothing can write to their variables, and no function runs them.
    """
    if not _class(type(op)).is_op_on_arrays:
        return []
    graphs = own_graphs(op)
    for one in held_ops(op).values():
        graphs += graphs_of_arrays(one)
    return graphs


def graphs_inside(ops: Iterable[Op]) -> Iterator[Any]:
    """Yield the inner graphs of ops on arrays, and those of the ops in them, each once."""
    # By identity: equal ops and graphs may hold other arrays.
    known: dict[int, Any] = {}
    pending = list(ops)
    while pending:
        for graph in graphs_of_arrays(pending.pop()):
            if id(graph) not in known:
                known[id(graph)] = graph
                yield graph
                pending += {id(node.op): node.op for node in parts_of(graph).nodes}.values()


class Parts(NamedTuple):
    """The parts of an inner graph, each once.

    Attributes
    ----------
    nodes
        The nodes, in their order.
    variables
        All variables, in the order of the nodes.
    constants
        The constants among them.
    """

    nodes: list[Apply[Any]]
    variables: list[Variable[Any, Any]]
    constants: list[Constant[Any]]


# Frozen graphs are immutable, and equal ones have the same parts.
_parts: WeakKeyDictionary[FrozenFunctionGraph, Parts] = WeakKeyDictionary()


def parts_of(graph: Any) -> Parts:
    """Return the parts of an inner graph.

    PyTensor's own set of variables is slower to compute, and has no order.
    """
    if type(graph) is not FrozenFunctionGraph:
        return _parts_of(graph)
    known = _parts.get(graph)
    if known is None:
        known = _parts[graph] = _parts_of(graph)
    return known


def _parts_of(graph: Any) -> Parts:
    nodes = list(graph.toposort())
    variables: dict[int, Variable[Any, Any]] = {id(one): one for one in graph.inputs}
    for node in nodes:
        for one in node.inputs:
            variables[id(one)] = one
        for one in node.outputs:
            variables[id(one)] = one
    variables.update((id(one), one) for one in graph.outputs)
    constants = [one for one in variables.values() if isinstance(one, Constant)]
    return Parts(nodes, list(variables.values()), constants)


def keeps_functions(op: Op) -> bool:
    """Whether an op, or an op that it holds, stores the compiled function of an inner graph."""
    return bool(graphs_of_arrays(op))


def without_functions(op: Op) -> Op:
    """Return an op without compiled inner graphs, which shares no mutable inner graph.

    The result is the same object if the op stores nothing compiled.
    """
    if not keeps_functions(op):
        return op
    own = copy.copy(op)
    attributes = vars(own)
    attributes.update({name: without_functions(one) for name, one in held_ops(op).items()})
    for name, new in _COMPILED.items():
        if name in attributes:
            attributes[name] = new()
    if isinstance(graph := attributes.get("fgraph"), FunctionGraph):
        # PyTensor 3.0 only.
        attributes["fgraph"] = graph.clone(clone_inner_graphs=True)
    return own


def inner_graphs(op: Any) -> list[tuple[str, Any, Any]]:
    """Return the inner graphs of an op on arrays: name, graph, and the function that runs it.

    The graph is the one that runs: PyTensor 3.0 rewrites it when its function is made. The function
    is None before it has been made, or if the outer function runs the graph. 3.3 has ops with
    several inner graphs.
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
    """Return the inputs of an inner graph that are inputs of its node, with the latter.

    They are the same each time that the graph runs within one call.
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
