"""What the sections of an audit look at: a graph, how it will run, and what is known of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from pytensor.compile.executor import Function
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.fg import FrozenFunctionGraph, FunctionGraph
from pytensor.link.vm import Loop, Stack
from pytensor.scalar.basic import ScalarType
from pytensor.scan.op import Scan
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.type import TensorType

from pytensor_fuse import _core
from pytensor_fuse._audit.shapes import Known, given_lengths, handed_in, infer, is_sparse
from pytensor_fuse._pytensor.inner_graphs import inner_graphs, runs_once
from pytensor_fuse._pytensor.targets import Target, resolve_target

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytensor.graph.basic import Apply
    from pytensor.link.basic import Linker

    from pytensor_fuse._audit.shapes import Lengths

# What an op prints is shown up to this length.
_LONGEST_NAME = 40


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
        return [_node_name(i, node) for i, node in enumerate(self.order)]

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
        if shape is None or None in shape:
            return None
        size = int(np.dtype(variable.type.dtype).itemsize)
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
        If ``compiled`` is neither, or ``shapes`` is no mapping.
    ValueError
        If ``shapes`` names what is no input, or cannot be.
    """
    if isinstance(compiled, Function):
        maker = compiled.maker
        fgraph, linker = maker.fgraph, maker.linker
        names = {spec.variable: v for spec, v in zip(maker.inputs, fgraph.inputs, strict=True)}
        lengths = given_lengths(fgraph, names, shapes)
        for spec, variable, container in zip(
            maker.inputs, fgraph.inputs, compiled.input_storage, strict=True
        ):
            # As it is now; the function may give it another shape.
            if spec.shared and isinstance(variable.type, TensorType) and spec.update is None:
                lengths.setdefault(variable, tuple(container.storage[0].shape))
        target = resolve_target(linker, fgraph)
        order, exact = _run_order(compiled)
        known = infer(fgraph.inputs, order, lengths, strict=bool(shapes))
        for spec, variable, container in zip(
            maker.inputs, fgraph.inputs, compiled.input_storage, strict=True
        ):
            if spec.shared and spec.update is None and is_sparse(variable.type):
                known.know_stored(variable, container.storage[0])
        return _context(fgraph, order, exact, (), 1, compiled, linker, target, known)
    if isinstance(compiled, FunctionGraph):
        known = infer(
            compiled.inputs,
            order := tuple(compiled.toposort()),
            given_lengths(compiled, {}, shapes),
            strict=bool(shapes),
        )
        target = resolve_target(None, compiled)
        return _context(compiled, order, True, (), 1, None, None, target, known)
    raise TypeError(
        "audit takes a compiled function (what pytensor.function returns) or a FunctionGraph, not "
        f"{type(compiled).__name__}"
    )


def short(value: object, limit: int = 60) -> str:
    """Return what ``value`` prints on one line, cut to ``limit`` characters."""
    text = " ".join(str(value).split())
    return text if len(text) <= limit else f"{text[: limit - 4]} ..."


def _node_name(position: int, node: Apply[Any]) -> str:
    named = next((v.name for v in node.outputs if v.name is not None), None)
    return f"{position}: {op_name(node.op)}" + ("" if named is None else f" [{short(named)}]")


def op_name(op: Any) -> str:
    """Return what an op prints, if that is short, or else its class."""
    text = short(op)
    if len(text) <= _LONGEST_NAME and "{...}" not in text:
        return text
    if isinstance(op, Blockwise):
        return f"Blockwise{{{op_name(op.core_op)}}}"
    return type(op).__name__


def _context(
    fgraph: FunctionGraph | FrozenFunctionGraph,
    order: tuple[Apply[Any], ...],
    order_is_exact: bool,
    path: tuple[str, ...],
    times: int | None,
    function: Function | None,
    linker: Linker | None,
    target: Target,
    known: Known,
) -> GraphContext:
    inner = []
    for i, node in enumerate(order):
        for name, graph, runs in inner_graphs(node.op):
            step = _node_name(i, node) + (f"[{name}]" if name else "")
            nodes, exact = (tuple(graph.toposort()), True) if runs is None else _run_order(runs)
            context = _context(
                graph,
                nodes,
                exact,
                (*path, step),
                _times(node, times, known),
                function if runs is None else runs,
                linker if runs is None else runs.maker.linker,
                target,
                infer(graph.inputs, nodes, *_inner_inputs(node, name, graph, known)),
            )
            inner.append((node, context))
    return GraphContext(
        fgraph,
        order,
        order_is_exact,
        path,
        times,
        function,
        linker,
        target,
        known,
        tuple(inner),
    )


def _times(node: Apply[Any], outer: int | None, known: Known) -> int | None:
    if isinstance(node.op, Blockwise):
        batch = (known.shape(node.outputs[0]) or ())[: node.op.batch_ndim(node)]
        if outer is None or None in batch or not runs_once(node.op.core_op):
            return None
        return math.prod((outer, *(n or 0 for n in batch)))
    if not isinstance(node.op, Scan):
        # Others, such as minimisers, run their graph until something is reached.
        return outer if runs_once(node.op) else None
    steps = known.value(node.inputs[0])
    if outer is None or steps is None or node.op.info.as_while:
        return None
    return outer * int(steps)


def _inner_inputs(
    node: Apply[Any], name: str, graph: Any, known: Known
) -> tuple[dict[Variable[Any, Any], Lengths], dict[Variable[Any, Any], np.ndarray]]:
    """Return what the inputs of a node say about those of an inner graph."""
    if isinstance(node.op, Scan):
        return _handed_to_steps(node, graph, known), {}
    if name or len(graph.inputs) != len(node.inputs):
        return {}, {}
    return handed_in(node, graph, known)


def _handed_to_steps(
    node: Apply[Any], graph: Any, known: Known
) -> dict[Variable[Any, Any], Lengths]:
    """Return the lengths of what a scan hands to its steps."""
    outer = node.op.get_oinp_iinp_iout_oout_mappings()["outer_inp_from_inner_inp"]
    lengths: dict[Variable[Any, Any], Lengths] = {}
    for i, variable in enumerate(graph.inputs):
        shape = known.shape(node.inputs[outer[i]]) if i in outer else None
        if shape is None or not isinstance(variable.type, TensorType):
            continue
        # Of sequences and states, a step gets an element along the first dimension.
        n_dropped = len(shape) - variable.type.ndim
        if n_dropped in (0, 1):
            lengths[variable] = shape[n_dropped:]
    return lengths


# Run order


def _run_order(function: Function) -> tuple[tuple[Apply[Any], ...], bool]:
    """Return the nodes of a function as they will run, and whether that is sure."""
    vm, maker = function.vm, function.maker
    nodes, thunks = getattr(vm, "nodes", None), getattr(vm, "thunks", None)
    if nodes is None or thunks is None:
        return tuple(maker.linker.schedule(maker.fgraph)), True
    if isinstance(vm, Loop):
        return tuple(nodes), True
    lazy = any(getattr(thunk, "lazy", False) for thunk in thunks)
    if isinstance(vm, Stack):
        return tuple(nodes), False
    return tuple(_on_demand(maker.fgraph, nodes)), not lazy


def _on_demand(fgraph: FunctionGraph, nodes: Sequence[Apply[Any]]) -> list[Apply[Any]]:
    """Return the nodes in the order in which PyTensor's C virtual machine comes to them.

    It computes one output after the other: first what must come before a node, then the node's
    inputs from left to right, then the node.
    """
    numbers: dict[Variable[Any, Any], int] = {}
    for node in nodes:
        for variable in (*node.inputs, *node.outputs):
            numbers.setdefault(variable, len(numbers))
    before = {
        node: sorted(
            {v for earlier in prerequisites for v in earlier.outputs}, key=numbers.__getitem__
        )
        for node, prerequisites in fgraph.orderings().items()
    }
    order: dict[Apply[Any], None] = {}
    for output in fgraph.outputs:
        stack = [] if output.owner is None else [(output.owner, iter(_needs(output.owner, before)))]
        while stack:
            node, needs = stack[-1]
            if node in order:
                stack.pop()
                continue
            for needed in needs:
                if needed.owner is not None and needed.owner not in order:
                    stack.append((needed.owner, iter(_needs(needed.owner, before))))
                    break
            else:
                order[node] = None
                stack.pop()
    return list(order)


def _needs(
    node: Apply[Any], before: Mapping[Apply[Any], list[Variable[Any, Any]]]
) -> list[Variable[Any, Any]]:
    return [*before.get(node, ()), *node.inputs]
