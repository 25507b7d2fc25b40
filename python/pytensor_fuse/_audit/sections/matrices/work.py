"""Nodes that work on matrices, and the amount of their work."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from pytensor.scan.op import Scan
from pytensor.tensor.blas import BatchedDot
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.linalg.solvers.general import Solve
from pytensor.tensor.linalg.solvers.linear_control import TRSYL
from pytensor.tensor.random.basic import MvNormalRV

from pytensor_fuse._audit.context.lengths import Lengths, product
from pytensor_fuse._audit.sections.matrices.kinds import (
    FACTORS,
    PRODUCTS,
    TRIANGULAR,
    MatrixKind,
    core_of,
    kind_of,
)
from pytensor_fuse._audit.sections.matrices.record import MatrixWork

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytensor.graph.basic import Apply

    from pytensor_fuse._audit.context.graph import GraphContext
    from pytensor_fuse._audit.context.values import Matrix, Values


class Found(NamedTuple):
    """Work, with its kind and the values of its matrix."""

    work: MatrixWork
    kind: MatrixKind
    values: Values
    matrix: Matrix | None


def find_work(values: Values, *, in_loop: bool = False) -> Iterator[Found]:
    """Iterate over the work in a graph and its inner graphs."""
    inner = defaultdict(list)
    for node, graph in values.inner:
        inner[node].append(graph)
    for node in values.context.order:
        kind = kind_of(node)
        if kind is not None:
            work = _describe(node, kind, values, in_loop=in_loop)
            if work is not None:
                at = kind.matrix
                yield Found(
                    work, kind, values, None if at is None else values.matrix(node.inputs[at])
                )
        for graph in inner[node]:
            yield from find_work(graph, in_loop=in_loop or isinstance(node.op, Scan))


def _describe(
    node: Apply[Any], kind: MatrixKind, values: Values, *, in_loop: bool
) -> MatrixWork | None:
    """Return the work of ``node``, or None if it is too little to be reported."""
    context = values.context
    lengths = _lengths(node, context)
    core = type(core_of(node.op))
    if core in PRODUCTS:
        order = sum(n != 1 for n in lengths)
        is_named = order == 3
    else:
        order = 2 if core in TRIANGULAR and lengths[1] == 1 else 3
        is_named = lengths[0] != 1
    if not is_named:
        return None
    return MatrixWork(
        node=node,
        name=f"{context.positions[node]}: {core.__name__}",
        path=context.path,
        op=core.__name__,
        order=order,
        lengths=lengths,
        batch=_batch(node, context),
        runs=context.times,
        invariant=in_loop and not values.varies(node),
    )


def _lengths(node: Apply[Any], context: GraphContext) -> Lengths:
    core = core_of(node.op)
    shapes = [context.shape(variable) or () for variable in node.inputs]
    if type(core) in PRODUCTS:
        left, right = (shapes[at] for at in FACTORS[type(core)])
        inner = right[-2] if left[-1] is None else left[-1]
        return left[-2], inner, right[-1]
    if type(core) in (Solve, *TRIANGULAR):
        return shapes[0][-1], 1 if core.b_ndim == 1 else shapes[1][-1]
    if type(core) is TRSYL:
        return shapes[0][-1], shapes[1][-1]
    return shapes[3 if type(core) is MvNormalRV else 0][-2:]


def _batch(node: Apply[Any], context: GraphContext) -> int | None:
    """Return the number of matrices that ``node`` works on."""
    core = core_of(node.op)
    if type(core) is MvNormalRV:
        batch = (context.shape(node.inputs[3]) or ())[:-2]
    elif type(core) is BatchedDot:
        batch = (context.shape(node.outputs[0]) or ())[:1]
    else:
        batch = ()
    if isinstance(node.op, Blockwise):
        batch += (context.shape(node.outputs[0]) or ())[: node.op.batch_ndim(node)]
    return product(batch)
