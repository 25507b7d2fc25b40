"""Constant evaluation of small integers, from which a graph computes shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.raise_op import CheckAndRaise
from pytensor.scalar.basic import ScalarOp, ScalarType
from pytensor.tensor.basic import Join, MakeVector, ScalarFromTensor, TensorFromScalar
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.shape import Reshape, Shape, Shape_i
from pytensor.tensor.subtensor import Subtensor
from pytensor.tensor.type import TensorType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.graph.basic import Apply, Variable

    from pytensor_fuse._audit.context.lengths import Lengths

# Integers are only evaluated in arrays of at most this many elements.
_MOST_VALUES = 64


def holds_integers(variable: Variable[Any, Any]) -> bool:
    """Return whether a variable is an integer or Boolean, or a vector of these."""
    type_ = variable.type
    if isinstance(type_, ScalarType):
        return np.dtype(type_.dtype).kind in "biu"
    return isinstance(type_, TensorType) and type_.ndim <= 1 and np.dtype(type_.dtype).kind in "biu"


# Ops that are evaluated by `perform`, which depends on nothing but the values of the inputs.
_PURE = (ScalarFromTensor, TensorFromScalar, MakeVector, Subtensor, Join, DimShuffle, Reshape)


def computed_integers(
    node: Apply[Any], shape: Lengths | None, inputs: Sequence[np.ndarray | None]
) -> list[np.ndarray]:
    """Return the integers that a node computes, or an empty list if they are unknown.

    Parameters
    ----------
    node
        The node, all of whose outputs hold integers.
    shape
        The shape of its first input; None if that is not a tensor.
    inputs
        The values of its inputs, where they are known.
    """
    op = node.op
    if isinstance(op, Shape_i | Shape):
        lengths = shape if isinstance(op, Shape) or shape is None else (shape[op.i],)
        if lengths is None or None in lengths:
            return []
        return [np.asarray(lengths if isinstance(op, Shape) else lengths[0], dtype="int64")]
    if isinstance(op, CheckAndRaise):
        # If the check fails, nothing after it runs.
        return [value for value in inputs[:1] if value is not None]
    if any(value is None or value.size > _MOST_VALUES for value in inputs):
        return []
    try:
        with np.errstate(all="ignore"):
            computed = _computed(node, inputs)
    except Exception:  # An evaluation that fails now would fail in the run, and has no value.
        return []
    return [
        np.asarray(value, dtype=variable.type.dtype)
        for variable, value in zip(node.outputs, computed, strict=True)
    ]


def _computed(node: Apply[Any], inputs: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    if isinstance(op, ScalarOp):
        computed: Any = op.impl(*[value[()] for value in inputs])
        return computed if len(node.outputs) > 1 else [computed]
    if isinstance(op, Elemwise):
        arrays = np.broadcast_arrays(*inputs)
        elements = zip(*(array.flat for array in arrays), strict=True)
        computed = [op.scalar_op.impl(*operands) for operands in elements]
        results = zip(*computed, strict=True) if len(node.outputs) > 1 else [computed]
        return [np.reshape(result, arrays[0].shape) for result in results]
    if isinstance(op, _PURE):
        storage: list[list[Any]] = [[None]]
        perform: Any = op.perform
        perform(node, [value if value.ndim else value[()] for value in inputs], storage)
        return storage[0]
    raise TypeError
