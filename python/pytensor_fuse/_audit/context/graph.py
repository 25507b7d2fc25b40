"""The input of an audit's sections: a graph, how it will run, and the known facts."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FrozenFunctionGraph, FunctionGraph
from pytensor.scalar.basic import ScalarType

from pytensor_fuse import _core
from pytensor_fuse._audit.context.lengths import Lengths, product
from pytensor_fuse._audit.context.sparse import is_sparse
from pytensor_fuse._pytensor.ops.fused_elemwise import is_fused_elemwise
from pytensor_fuse._reports.names import node_name
from pytensor_fuse._reports.text import short

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytensor.compile.executor import Function
    from pytensor.link.basic import Linker

    from pytensor_fuse._audit.context.shapes import Known
    from pytensor_fuse._pytensor.ops.targets import Target


@dataclass(frozen=True, eq=False)
class GraphContext:
    """A graph under audit.

    Attributes
    ----------
    fgraph
        The graph. Inner graphs may be frozen.
    order
        Its apply nodes in the order in which they will run.
    order_is_exact
        Whether the order is certain: with lazy nodes it depends on values.
    path
        The names, as by `name`, of the nodes that lead to an inner graph; empty for the outermost
        graph.
    times
        How often it runs in a call of the function, if known: the product of the steps of the
        enclosing scans.
    function
        The compiled function that runs it, if it is compiled.
    linker
        The linker of that function.
    target
        The compiler or interpreter of the nodes; `Target.STRICT` if unknown.
    known
        The shapes of its variables, and the values of small integers.
    inner
        The inner graphs of its nodes, except for those of scalar ops, each with its node.
    """

    fgraph: FunctionGraph | FrozenFunctionGraph
    order: tuple[Apply[Any], ...]
    order_is_exact: bool
    path: tuple[str, ...]
    times: int | None
    function: Function | None
    linker: Linker | None
    target: Target
    known: Known = field(repr=False)
    inner: tuple[tuple[Apply[Any], GraphContext], ...] = field(default=(), repr=False)

    @cached_property
    def positions(self) -> dict[Apply[Any], int]:
        """The position of each node in the order."""
        return {node: i for i, node in enumerate(self.order)}

    @cached_property
    def clients(self) -> dict[Variable[Any, Any], list[tuple[Apply[Any], int]]]:
        """The readers of each variable and the indices of their inputs, in the order of the run.

        A variable without readers has no entry.
        """
        clients: dict[Variable[Any, Any], list[tuple[Apply[Any], int]]] = {}
        for node in self.order:
            for i, variable in enumerate(node.inputs):
                clients.setdefault(variable, []).append((node, i))
        return clients

    @cached_property
    def dependencies(self) -> _core.Graph:
        """The dependencies between nodes, by their positions in the order."""
        edges = {
            (self.positions[v.owner], i)
            for i, node in enumerate(self.order)
            for v in node.inputs
            if v.owner is not None
        }
        if isinstance(self.fgraph, FunctionGraph):
            edges |= {
                (self.positions[earlier], self.positions[node])
                for node, prerequisites in self.fgraph.orderings().items()
                for earlier in prerequisites
            }
        sources, targets = zip(*sorted(edges), strict=True) if edges else ((), ())
        return _core.Graph(len(self.order), sources, targets)

    @cached_property
    def inner_graph(self) -> dict[Apply[Any], GraphContext]:
        """The inner graph of each node that has one; the first, if there are several."""
        return dict(reversed(self.inner))

    def name(self, node: Apply[Any]) -> str:
        """Return a name by which a reader can find a node.

        It consists of the position in the order, the op, and the name of the result, if any.
        """
        return self._names[self.positions[node]]

    @cached_property
    def _names(self) -> list[str]:
        return [node_name(i, node) for i, node in enumerate(self.order)]

    def variable_name(self, variable: Variable[Any, Any]) -> str:
        """Return the name of a variable, or of the node that computes it, or its value."""
        if variable.name is not None:
            return short(variable.name)
        if variable.owner is not None and variable.owner in self.positions:
            name = self.name(variable.owner)
            number = variable.owner.outputs.index(variable)
            return f"{name}.{number}" if len(variable.owner.outputs) > 1 else name
        if isinstance(variable, Constant):
            return short(variable)
        place = self._input_places.get(variable)
        return short(variable) if place is None else f"input {place}"

    @cached_property
    def _input_places(self) -> dict[Variable[Any, Any], int]:
        return {variable: i for i, variable in enumerate(self.fgraph.inputs)}

    def walk(self) -> Iterator[GraphContext]:
        """Iterate over this graph and all inner graphs, in preorder."""
        yield self
        for _, inner in self.inner:
            yield from inner.walk()

    def walk_node_by_node(self) -> Iterator[GraphContext]:
        """Iterate over this graph and the inner graphs whose nodes run one by one.

        The graphs inside kernels are left out, since each is one loop.
        """
        yield self
        for node, inner in self.inner:
            if not is_fused_elemwise(node.op):
                yield from inner.walk_node_by_node()

    def shape(self, variable: Variable[Any, Any]) -> Lengths | None:
        """Return the known lengths of a tensor, or None for a variable of another type."""
        return self.known.shape(variable)

    def nbytes(self, variable: Variable[Any, Any]) -> int | None:
        """Return the size of a tensor or number in bytes, if all its lengths are known.

        The size of a sparse matrix depends on the number of stored elements.
        """
        if is_sparse(variable.type):
            return self.known.stored(variable)
        shape = () if isinstance(variable.type, ScalarType) else self.shape(variable)
        if shape is None:
            return None
        return product((int(np.dtype(variable.type.dtype).itemsize), *shape))
