"""IfElse: a branch that runs one of two sides."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pytensor_fuse._native.lowering.graph import graph_refusal, lower_inner
from pytensor_fuse._native.lowering.registry import (
    NoRuleError,
    dtype_refusal,
    lower,
    refuses_dtypes,
)
from pytensor_fuse._native.lowering.tensors import scalar, stored

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor_fuse._native.lowering.types import (
        BufferId,
        Context,
        Node,
        Statement,
        Tensor,
        Tensors,
        Value,
    )

    Side = Callable[[], Sequence[Tensor]]

# PyTensor 3.3 has a new module for IfElse, and compiles it to an op that computes only one side.
_ops: Any = import_module(
    "pytensor.conditional.op" if find_spec("pytensor.conditional") else "pytensor.ifelse"
)


def _if_else(op: Any, node: Node, context: Context, inputs: Tensors) -> Tensors:
    condition, *values = inputs
    then, otherwise = values[: op.n_outs], values[op.n_outs :]
    return either(context, condition, lambda: then, lambda: otherwise)


lower.register(_ops.IfElse, refuses=refuses_dtypes)(_if_else)


def _lazy_refusal(op: Any, node: Node) -> str | None:
    return (
        dtype_refusal(node)
        or graph_refusal(op.true_branch.fgraph)
        or graph_refusal(op.false_branch.fgraph)
    )


def _lazy_if_else(op: Any, node: Node, context: Context, inputs: Tensors) -> Tensors:
    condition, *given = inputs

    def side(branch: Any) -> Side:
        graph = branch.fgraph
        return lambda: lower_inner(context, graph.inputs, graph.outputs, graph.toposort(), given)

    return either(context, condition, side(op.true_branch), side(op.false_branch))


if hasattr(_ops, "LazyIfElse"):
    lower.register(_ops.LazyIfElse, refuses=_lazy_refusal)(_lazy_if_else)


def either(context: Context, given: Tensor, then: Side, otherwise: Side) -> Tensors:
    """Return the arrays of one of two sides; the statements of the other side do not run.

    Parameters
    ----------
    context
        The lowering.
    given
        The condition.
    then, otherwise
        Emit the statements of a side, and return its arrays.

    Returns
    -------
    list of Tensor
        New arrays, without aliases.

    Raises
    ------
    NoRuleError
        If a length is computed in one side alone: memory is planned outside of the branch.
    """
    builder = context.builder
    condition = builder.cast(given.at(()), "bool")
    buffers: dict[int, BufferId] = {}
    n_before = len(builder.program.buffers)

    def write(side: Side) -> tuple[list[Statement], Tensors]:
        with builder.block() as statements:
            tensors = list(side())
            for position, tensor in enumerate(tensors):
                if tensor.ndim:
                    buffer = buffers.get(position)
                    if buffer is None:
                        # Its lengths depend on both sides, which it precedes.
                        buffer = builder.buffer("temporary", 0, tensor.dtype, ())
                        buffers[position] = buffer
                    context.write(buffer, tensor)
            tensors = [one if one.ndim else scalar(builder, one.at(())) for one in tensors]
        return statements, tensors

    of_then, thens = write(then)
    of_otherwise, otherwises = write(otherwise)
    for about in builder.program.buffers[n_before:]:
        _require_visible(context, about.lengths)
    outs = {}
    choices = []
    for position, (one, other) in enumerate(zip(thens, otherwises, strict=True)):
        if one.ndim:
            lengths = [
                _either_length(context, condition, *pair)
                for pair in zip(one.lengths, other.lengths, strict=True)
            ]
            builder.program.buffers[buffers[position]].lengths = tuple(lengths)
            context.renew(buffers[position])
            outs[position] = stored(builder, buffers[position])
        else:
            choices.append((position, one.at(()), other.at(())))
    values = builder.branch(
        condition, of_then, of_otherwise, [(one, other) for _, one, other in choices]
    )
    for (position, _, _), value in zip(choices, values, strict=True):
        outs[position] = scalar(builder, value)
    return [outs[position] for position in range(len(thens))]


def _either_length(context: Context, condition: Value, one: Value, other: Value) -> Value:
    one, other = context.length(one), context.length(other)
    builder = context.builder
    _require_visible(context, (one, other))
    return one if one == other else builder.op("select", condition, one, other)


def _require_visible(context: Context, lengths: Sequence[Value]) -> None:
    if not all(context.builder.is_visible(length) for length in lengths):
        raise NoRuleError("an array whose length is known on one side of a branch only")
