"""What the sections of an audit look at: a graph, how it will run, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from pytensor.compile.executor import Function
from pytensor.graph.basic import Constant
from pytensor.graph.fg import FrozenFunctionGraph, FunctionGraph
from pytensor.tensor.type import TensorType

from pytensor_fuse import _compat
from pytensor_fuse._targets import Target, resolve_target

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytensor.graph.basic import Apply, Variable
    from pytensor.link.basic import Linker

# Lengths of the dimensions of a variable; None where one is not known.
Lengths = tuple[int | None, ...]


class Section(Protocol):
    """A part of an audit."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain types that JSON can hold."""

    def lines(self) -> list[str]:
        """Return the lines of the text, most important first; their number is bounded."""

    def html(self) -> str:
        """Return the body of the section, without a heading, its texts escaped."""


@dataclass(frozen=True, eq=False)
class GraphContext:
    """A graph that is audited.

    Attributes
    ----------
    fgraph
        The graph. Inner graphs may be frozen.
    order
        Its apply nodes in the order in which they will run.
    path
        Where it is: empty for the graph that was given; for an inner graph the names, as `name`
        gives them, of the nodes that lead to it.
    function
        The compiled function that it belongs to, if it is compiled.
    linker
        The linker of that function.
    target
        Who compiles or runs the nodes; `Target.STRICT` if that is not known.
    lengths
        Shapes of tensor variables, from their types and from ``shapes=``.
    inner
        The inner graphs of its nodes, but for those of scalar ops, with the node that each is of.
    """

    fgraph: FunctionGraph | FrozenFunctionGraph
    order: tuple[Apply[Any], ...]
    path: tuple[str, ...]
    function: Function | None
    linker: Linker | None
    target: Target
    lengths: Mapping[Variable[Any, Any], Lengths]
    inner: tuple[tuple[Apply[Any], GraphContext], ...] = field(default=(), repr=False)

    @cached_property
    def positions(self) -> dict[Apply[Any], int]:
        """Where in the order each node runs."""
        return {node: i for i, node in enumerate(self.order)}

    def name(self, node: Apply[Any]) -> str:
        """Return a name by which a reader can find a node: its place in the order and its op."""
        return f"{self.positions[node]}: {short(node.op)}"

    def walk(self) -> Iterator[GraphContext]:
        """Iterate over this graph and all that are in it, each before those in it."""
        yield self
        for _, inner in self.inner:
            yield from inner.walk()

    def shape(self, variable: Variable[Any, Any]) -> Lengths | None:
        """Return the lengths that are known of a tensor; None for what is no tensor."""
        if isinstance(variable, Constant) and isinstance(variable.type, TensorType):
            return tuple(int(n) for n in variable.data.shape)
        known = self.lengths.get(variable)
        if known is not None:
            return known
        return variable.type.shape if isinstance(variable.type, TensorType) else None

    def nbytes(self, variable: Variable[Any, Any]) -> int | None:
        """Return the size of a tensor in bytes, if all its lengths are known."""
        shape = self.shape(variable)
        if shape is None or any(n is None for n in shape):
            return None
        size = _itemsize(variable.type.dtype)
        for n in shape:
            size *= n or 0
        return size


def graph_context(
    compiled: Function | FunctionGraph,
    shapes: Mapping[Any, Sequence[int | None]] | None,
) -> GraphContext:
    """Return what there is to know about a compiled function or a graph.

    Raises
    ------
    TypeError
        If ``compiled`` is neither.
    ValueError
        If ``shapes`` is wrong.
    """
    if isinstance(compiled, Function):
        fgraph = compiled.maker.fgraph
        linker = compiled.maker.linker
        target = resolve_target(linker, fgraph)
        order = _order(compiled, linker, fgraph)
        function = compiled
    elif isinstance(compiled, FunctionGraph):
        fgraph, function, linker = compiled, None, None
        target = resolve_target(None, fgraph)
        order = tuple(fgraph.toposort())
    else:
        raise TypeError(
            "audit takes a compiled function (what pytensor.function returns) or a FunctionGraph, "
            f"not {type(compiled).__name__}"
        )
    return _context(fgraph, order, (), function, linker, target)


def short(value: object, limit: int = 60) -> str:
    """Return what ``value`` prints, cut to ``limit`` characters."""
    text = str(value)
    return text if len(text) <= limit else f"{text[: limit - 4]} ..."


def _context(
    fgraph: FunctionGraph | FrozenFunctionGraph,
    order: tuple[Apply[Any], ...],
    path: tuple[str, ...],
    function: Function | None,
    linker: Linker | None,
    target: Target,
) -> GraphContext:
    inner = []
    for i, node in enumerate(order):
        for name, graph, runs in _compat.inner_graphs(node.op):
            step = f"{i}: {short(node.op)}" + (f"[{name}]" if name else "")
            nodes = tuple(graph.toposort())
            inner.append(
                (node, _context(graph, nodes, (*path, step), runs or function, linker, target))
            )
    return GraphContext(fgraph, order, path, function, linker, target, {}, tuple(inner))


def _order(function: Function, linker: Linker, fgraph: FunctionGraph) -> tuple[Apply[Any], ...]:
    nodes = getattr(function.vm, "nodes", None)
    return tuple(linker.schedule(fgraph) if nodes is None else nodes)


def _itemsize(dtype: str) -> int:
    import numpy as np

    return int(np.dtype(dtype).itemsize)
