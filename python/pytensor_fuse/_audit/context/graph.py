"""What the sections of an audit look at: a graph, how it will run, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.graph.basic import Constant
from pytensor.graph.fg import FunctionGraph
from pytensor.scalar.basic import ScalarType

from pytensor_fuse import _core
from pytensor_fuse._audit.context.lengths import product
from pytensor_fuse._audit.context.sparse import is_sparse
from pytensor_fuse._pytensor.fused_elemwise import is_fused_elemwise
from pytensor_fuse._reports.names import node_name
from pytensor_fuse._reports.text import short

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytensor.compile.executor import Function
    from pytensor.graph.basic import Apply, Variable
    from pytensor.graph.fg import FrozenFunctionGraph
    from pytensor.link.basic import Linker

    from pytensor_fuse._audit.context.lengths import Lengths
    from pytensor_fuse._audit.context.shapes import Known
    from pytensor_fuse._pytensor.targets import Target


@dataclass(frozen=True, eq=False)
class GraphContext:
    """A graph that is audited.

    Attributes
    ----------
    fgraph
        The graph. Inner graphs may be frozen.
    order
        Its apply nodes in the order in which they will run.
    order_is_exact
        Whether that is sure: nodes that choose what to run make it depend on values.
    path
        Where it is: empty for the graph that was given; for an inner graph the names, as `name`
        gives them, of the nodes that lead to it.
    times
        How often it runs in a call of the function, if that is known: the steps of the scans that
        it is in, multiplied.
    function
        The compiled function that runs it, if it is compiled.
    linker
        The linker of that function.
    target
        Who compiles or runs the nodes; `Target.STRICT` if that is not known.
    known
        Shapes of its variables, and values of small integers among them.
    inner
        The inner graphs of its nodes, but for those of scalar ops, with the node that each is of.
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
        """Where in the order each node runs."""
        return {node: i for i, node in enumerate(self.order)}

    @cached_property
    def clients(self) -> dict[Variable[Any, Any], list[tuple[Apply[Any], int]]]:
        """The nodes that read each variable, in the order in which they run, and at which input.

        A variable that nothing reads is not there.
        """
        clients: dict[Variable[Any, Any], list[tuple[Apply[Any], int]]] = {}
        for node in self.order:
            for i, variable in enumerate(node.inputs):
                clients.setdefault(variable, []).append((node, i))
        return clients

    @cached_property
    def dependencies(self) -> _core.Graph:
        """Which nodes must run before which, by their places in the order."""
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
        """The inner graph of each node that has one, the first where there are several."""
        return dict(reversed(self.inner))

    def name(self, node: Apply[Any]) -> str:
        """Return a name by which a reader can find a node.

        That is its place in the order, its op, and what its result is called, if it has a name.
        """
        return self._names[self.positions[node]]

    @cached_property
    def _names(self) -> list[str]:
        return [node_name(i, node) for i, node in enumerate(self.order)]

    def variable_name(self, variable: Variable[Any, Any]) -> str:
        """Return the name of a variable, or the node that computes it, or its value."""
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
        """Iterate over this graph and all that are in it, each before those in it."""
        yield self
        for _, inner in self.inner:
            yield from inner.walk()

    def walk_node_by_node(self) -> Iterator[GraphContext]:
        """Iterate over this graph and those in it whose nodes run one by one.

        The graphs that kernels wrap are left out: each is one loop.
        """
        yield self
        for node, inner in self.inner:
            if not is_fused_elemwise(node.op):
                yield from inner.walk_node_by_node()

    def shape(self, variable: Variable[Any, Any]) -> Lengths | None:
        """Return the lengths that are known of a tensor; None for what is no tensor."""
        return self.known.shape(variable)

    def nbytes(self, variable: Variable[Any, Any]) -> int | None:
        """Return the size of a tensor or number in bytes, if all its lengths are known.

        That of a sparse matrix depends on how many elements it stores.
        """
        if is_sparse(variable.type):
            return self.known.stored(variable)
        shape = () if isinstance(variable.type, ScalarType) else self.shape(variable)
        if shape is None:
            return None
        return product((int(np.dtype(variable.type.dtype).itemsize), *shape))
