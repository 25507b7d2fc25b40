"""Sums of outer products as matrix products: the sum of ``w_i z_i'`` is ``W' Z``.

The gradient by a factor with one solve per row of data is such a sum. PyTensor makes a stack of as
many matrices as there are rows, and adds them up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Constant
from pytensor.scalar.basic import Mul
from pytensor.tensor.basic import Alloc, ARange
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Sum

from pytensor_fuse._linalg.structure.matrices import core_of, scalar_op

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

# The depth of the search for equal slices.
_DEPTH = 8


def sum_of_outer_products(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Replace a sum of outer products of rows by a matrix product."""
    if not isinstance(node.op, Sum) or node.op.axis is None or len(node.op.axis) != 1:
        return None
    [stack], [axis] = node.inputs, node.op.axis
    [old] = node.outputs
    if stack.type.ndim != 3 or not isinstance(scalar_op(stack), Mul):
        return None
    # In single precision, the sum is more exact than a matrix product.
    if any(one.type.dtype != "float64" for one in (old, stack, *stack.owner.inputs)):
        return None
    if len(fgraph.clients[stack]) != 1:
        return None
    down, across = (one for one in range(3) if one != axis)
    columns, rows, others = [], [], []
    for factor in stack.owner.inputs:
        alike = without_axis(factor, axis)
        if alike is not None:
            others.append(alike)
        elif factor.type.broadcastable[across]:
            columns.append(factor)
        elif factor.type.broadcastable[down]:
            rows.append(factor)
        else:
            return None
    if not any(not one.type.broadcastable[down] for one in columns) or not rows:
        return None
    product: Any = pt.dot(_moved(columns, down, axis), _moved(rows, axis, across))
    result = pt.mul(product, *others) if others else product
    if result.type.broadcastable != old.type.broadcastable:
        return None
    return [result]


def without_axis(variable: Any, axis: int, depth: int = _DEPTH) -> Any:
    """Return the slice of an array along an axis, if all slices are equal; else None."""
    if isinstance(variable, Constant):
        first = np.take(variable.data, [0], axis) if variable.data.size else None
        if first is None or not np.array_equal(variable.data, first + np.zeros_like(variable.data)):
            return None
        return pt.constant(first[(slice(None),) * axis + (0,)])
    if variable.type.broadcastable[axis]:
        kept = [one for one in range(variable.type.ndim) if one != axis]
        return variable.dimshuffle(kept)
    node = variable.owner
    if node is None or depth <= 0:
        return None
    if isinstance(node.op, Elemwise):
        found = [without_axis(one, axis, depth - 1) for one in node.inputs]
        return None if any(one is None for one in found) else node.op(*found)
    if isinstance(node.op, DimShuffle):
        order: Any = node.op.new_order
        inner = without_axis(node.inputs[0], order[axis], depth - 1)
        if inner is None:
            return None
        kept = [one for at, one in enumerate(order) if at != axis]
        return inner.dimshuffle([_less(one, order[axis]) for one in kept])
    if isinstance(node.op, Alloc):
        value, *shape = node.inputs
        place = axis - len(shape) + value.type.ndim
        if place >= 0:
            value = without_axis(value, place, depth - 1)
        del shape[axis]
        return None if value is None else pt.alloc(value, *shape)
    if isinstance(node.op, Blockwise) and isinstance(core_of(node), ARange) and axis == 0:
        found = [without_axis(one, 0, depth - 1) for one in node.inputs]
        return None if any(one is None for one in found) else core_of(node)(*found)
    return None


def _less(axis: Any, removed: int) -> Any:
    return axis - 1 if axis != "x" and axis > removed else axis


def _moved(factors: list[Any], *order: int) -> Any:
    """Multiply arrays that have two axes in this order, and the other of length 1."""
    result: Any = None
    for factor in factors:
        axes: list[Any] = list(order)
        while factor.owner is not None and isinstance(factor.owner.op, DimShuffle):
            axes = [one if one == "x" else factor.owner.op.new_order[one] for one in axes]
            [factor] = factor.owner.inputs
        one = factor if axes == list(range(factor.type.ndim)) else factor.dimshuffle(axes)
        result = one if result is None else result * one
    return result
