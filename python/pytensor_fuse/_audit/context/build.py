"""Construction of the context of an audit, including inner graphs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytensor.compile.executor import Function
from pytensor.scan.op import Scan
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.type import TensorType

from pytensor_fuse._audit.context.given_shapes import given_lengths
from pytensor_fuse._audit.context.graph import GraphContext
from pytensor_fuse._audit.context.shapes import Known, handed_in, infer
from pytensor_fuse._audit.context.sparse import is_sparse
from pytensor_fuse._pytensor.graphs.inner_graphs import inner_graphs, runs_once
from pytensor_fuse._pytensor.graphs.run_order import run_order
from pytensor_fuse._pytensor.ops.targets import resolve_target
from pytensor_fuse._reports.asked import graph_of
from pytensor_fuse._reports.names import node_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from pytensor.graph.basic import Apply, Variable
    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._audit.context.lengths import Lengths


def graph_context(
    compiled: Function | FunctionGraph, shapes: Mapping[Any, Sequence[int | None]] | None
) -> GraphContext:
    """Return the context of a compiled function or a graph.

    Raises
    ------
    TypeError
        If ``shapes`` is not a mapping.
    ValueError
        If ``shapes`` is impossible, or names something that is not an input.
    """
    target = resolve_target(
        compiled.maker.linker if isinstance(compiled, Function) else None, graph_of(compiled)
    )
    if not isinstance(compiled, Function):
        order = tuple(compiled.toposort())
        lengths = given_lengths(compiled, {}, shapes)
        known = infer(compiled.inputs, order, lengths, strict=bool(shapes))
        return _with_inner_graphs(
            GraphContext(compiled, order, True, (), 1, None, None, target, known)
        )
    maker = compiled.maker
    fgraph, linker = maker.fgraph, maker.linker
    names = {spec.variable: v for spec, v in zip(maker.inputs, fgraph.inputs, strict=True)}
    lengths = given_lengths(fgraph, names, shapes)
    # Current values of shared variables; a function with an update may change them.
    constant = [
        (variable, container.storage[0])
        for spec, variable, container in zip(
            maker.inputs, fgraph.inputs, compiled.input_storage, strict=True
        )
        if spec.shared and spec.update is None
    ]
    for variable, value in constant:
        if isinstance(variable.type, TensorType):
            lengths.setdefault(variable, tuple(value.shape))
    order, exact = run_order(compiled)
    known = infer(fgraph.inputs, order, lengths, strict=bool(shapes))
    for variable, value in constant:
        if is_sparse(variable.type):
            known.know_stored(variable, value)
    return _with_inner_graphs(
        GraphContext(fgraph, order, exact, (), 1, compiled, linker, target, known)
    )


def _with_inner_graphs(context: GraphContext) -> GraphContext:
    """Return a context with those of the inner graphs of its nodes."""
    known, inner = context.known, []
    for i, node in enumerate(context.order):
        for name, graph, runs in inner_graphs(node.op):
            step = node_name(i, node) + (f"[{name}]" if name else "")
            order, exact = (tuple(graph.toposort()), True) if runs is None else run_order(runs)
            inside = GraphContext(
                fgraph=graph,
                order=order,
                order_is_exact=exact,
                path=(*context.path, step),
                times=_times(node, context.times, known),
                function=context.function if runs is None else runs,
                linker=context.linker if runs is None else runs.maker.linker,
                target=context.target,
                known=infer(graph.inputs, order, *_inner_inputs(node, name, graph, known)),
            )
            inner.append((node, _with_inner_graphs(inside)))
    return replace(context, inner=tuple(inner))


def _times(node: Apply[Any], outer: int | None, known: Known) -> int | None:
    if isinstance(node.op, Blockwise):
        batch = (known.shape(node.outputs[0]) or ())[: node.op.batch_ndim(node)]
        if outer is None or None in batch or not runs_once(node.op.core_op):
            return None
        return math.prod((outer, *(n or 0 for n in batch)))
    if not isinstance(node.op, Scan):
        # Other ops, such as minimizers, run their graph until convergence.
        return outer if runs_once(node.op) else None
    steps = known.value(node.inputs[0])
    if outer is None or steps is None or node.op.info.as_while:
        return None
    return outer * int(steps)


def _inner_inputs(
    node: Apply[Any], name: str, graph: Any, known: Known
) -> tuple[dict[Variable[Any, Any], Lengths], dict[Variable[Any, Any], np.ndarray]]:
    """Return the lengths and values of an inner graph's inputs that follow from its node's."""
    if isinstance(node.op, Scan):
        return _handed_to_steps(node, graph, known), {}
    if name or len(graph.inputs) != len(node.inputs):
        return {}, {}
    return handed_in(node, graph, known)


def _handed_to_steps(
    node: Apply[Any], graph: Any, known: Known
) -> dict[Variable[Any, Any], Lengths]:
    """Return the lengths of the inputs of a scan's steps."""
    outer = node.op.get_oinp_iinp_iout_oout_mappings()["outer_inp_from_inner_inp"]
    lengths: dict[Variable[Any, Any], Lengths] = {}
    for i, variable in enumerate(graph.inputs):
        shape = known.shape(node.inputs[outer[i]]) if i in outer else None
        if shape is None or not isinstance(variable.type, TensorType):
            continue
        # A step gets one element of a sequence or state along the first dimension.
        n_dropped = len(shape) - variable.type.ndim
        if n_dropped in (0, 1):
            lengths[variable] = shape[n_dropped:]
    return lengths
