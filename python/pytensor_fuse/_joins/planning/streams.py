"""Streams of a join: whether each operand, by itself, can be written into the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.graph.basic import Constant
from pytensor.tensor.shape import Reshape

from pytensor_fuse._joins.lengths import lengths_of
from pytensor_fuse._joins.plans import JoinReason, Stream
from pytensor_fuse._joins.producers import producer_of
from pytensor_fuse._pytensor.ops.versions_of_ops import joins_all_dims

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.graph.basic import Variable
    from pytensor.tensor.type import TensorType

    from pytensor_fuse._joins.plans import Compilation


def stream_of(
    compilation: Compilation, operand: Variable[Any, Any], count: int, joined: TensorType
) -> Stream:
    """Return the stream of an operand that occurs ``count`` times in the join."""
    clients = compilation.fgraph.clients
    if count > 1 or len(clients[operand]) != 1:
        return copied(operand, JoinReason.OTHER_CLIENTS)
    variable = operand
    if joined.ndim == 1:
        variable = _raveled(operand)
        if len(clients[variable]) != 1:
            return copied(operand, JoinReason.OTHER_CLIENTS)
    return produced(compilation, operand, variable, joined.dtype)


def produced(
    compilation: Compilation, operand: Variable[Any, Any], variable: Variable[Any, Any], dtype: str
) -> Stream:
    """Return the stream whose elements ``variable``'s node computes, written if possible."""
    kernel = variable.owner
    producer = None if kernel is None else producer_of(kernel)
    if producer is None:
        return copied(operand, JoinReason.NO_KERNEL)
    refusal = producer.refusal(compilation, variable, dtype)
    if refusal is not None:
        return copied(operand, refusal)
    output = kernel.outputs.index(variable)
    return Stream(operand, JoinReason.WRITTEN, kernel, output, lengths_of(variable))


def copied(operand: Variable[Any, Any], reason: JoinReason) -> Stream:
    """Return a stream that is copied for this reason."""
    return Stream(operand, reason, None, 0, lengths_of(operand))


def all_copied(operands: Sequence[Variable[Any, Any]], reason: JoinReason) -> tuple[Stream, ...]:
    """Return streams that are all copied for the same reason."""
    return tuple(copied(operand, reason) for operand in operands)


def _raveled(variable: Variable[Any, Any]) -> Variable[Any, Any]:
    """Return the variable that a vector is the raveled view of, or the vector itself."""
    node = variable.owner
    if (
        node is not None
        and isinstance(node.op, Reshape)
        and isinstance(node.inputs[1], Constant)
        and np.array_equal(node.inputs[1].data, [-1])
    ) or (node is not None and joins_all_dims(node)):
        inner: Variable[Any, Any] = node.inputs[0]
        return inner
    return variable
