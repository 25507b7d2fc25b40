"""Outer products ``u v'``, and linear functions of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytensor.tensor as pt
from pytensor.scalar.basic import Mul, Neg, TrueDiv
from pytensor.tensor.math import Dot
from pytensor.tensor.shape import SpecifyShape
from pytensor.tensor.type_other import NoneTypeT

from pytensor_fuse._linalg.structure.matrices import (
    core_of,
    product_of,
    scalar_op,
    transpose_of,
    turned,
)

if TYPE_CHECKING:
    from collections.abc import Callable


class Outer(NamedTuple):
    """A product of a column and a row: both have the rank of the product.

    Attributes
    ----------
    column
        Its last axis has length 1.
    row
        Its last axis but one has length 1.
    """

    column: Any
    row: Any


def outer_product(variable: Any) -> Outer | None:
    """Return the column and the row whose product a matrix is; None if it is not known.

    The factors are multiplied in another order, after a cast to the dtype of the matrix. Matrices
    of integers, which overflow differently, are left alone.
    """
    ndim = variable.type.ndim
    node = variable.owner
    if ndim < 2 or node is None or variable.type.numpy_dtype.kind != "f":
        return None
    inner = transpose_of(variable)
    if inner is not None:
        found = outer_product(inner)
        return None if found is None else Outer(turned(found.row), turned(found.column))
    if isinstance(node.op, SpecifyShape):
        return _of_shape(outer_product(node.inputs[0]), *node.inputs[1:])
    if isinstance(core_of(node), Dot):
        left, right = node.inputs
        thin = left.type.ndim == ndim == right.type.ndim and left.type.shape[-1] == 1
        return Outer(left, right) if thin and right.type.shape[-2] == 1 else None
    op = scalar_op(variable)
    if isinstance(op, Neg):
        found = outer_product(node.inputs[0])
        return None if found is None else Outer(-found.column, found.row)
    if isinstance(op, Mul):
        return _product(node.inputs, variable.type.dtype)
    if isinstance(op, TrueDiv):
        found, divisor = _product(node.inputs[:1], variable.type.dtype), node.inputs[1]
        if found is None or not any(divisor.type.broadcastable[-2:]):
            return None
        if divisor.type.broadcastable[-1]:
            return Outer(found.column / divisor, found.row)
        return Outer(found.column, found.row / divisor)
    return None


def _of_shape(outer: Outer | None, *shape: Any) -> Outer | None:
    """Return an outer product with a specified shape: the lengths of its vectors are checked."""
    if outer is None or len(shape) != 2:
        return None
    column, row = outer
    if column.type.broadcastable[0] or row.type.broadcastable[1]:
        return None
    known = [None if isinstance(one.type, NoneTypeT) else one for one in shape]
    return Outer(pt.specify_shape(column, (known[0], 1)), pt.specify_shape(row, (1, known[1])))


def _product(factors: list[Any], dtype: str) -> Outer | None:
    columns: list[Any] = []
    rows: list[Any] = []
    for factor in factors:
        if factor.type.broadcastable[-1]:
            columns.append(factor)
        elif factor.type.broadcastable[-2]:
            rows.append(factor)
        else:
            found = outer_product(factor)
            if found is None:
                return None
            columns.append(found.column)
            rows.append(found.row)
    if not columns or not rows:
        return None
    return Outer(*(product_of([one.astype(dtype) for one in part]) for part in (columns, rows)))


def for_columns(right: Any, apply: Callable[[Any], Any]) -> Any:
    """Return a linear function of the columns of a matrix; None for an outer product of one row.

    Parameters
    ----------
    right
        The matrix. For an outer product, the function is applied to the column alone, and the
        result is multiplied with the row.
    apply
        Computes the function for all columns of a matrix.
    """
    outer = None if any(right.type.broadcastable) else outer_product(right)
    if outer is None:
        return apply(right)
    if outer.column.type.broadcastable[0]:
        return None
    return apply(outer.column) * outer.row
