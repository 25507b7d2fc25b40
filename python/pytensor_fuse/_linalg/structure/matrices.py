"""What variables are as matrices: transposes, columns and rows, outer products, triangles.

Only forms that are certain count: what is not recognized is some matrix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Constant
from pytensor.scalar.basic import Add, Cast, Mul, Neg, Second, TrueDiv
from pytensor.tensor.basic import Alloc, AllocDiag, ARange
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.linalg.constructors import BlockDiagonal
from pytensor.tensor.linalg.inverse import MatrixInverse
from pytensor.tensor.linalg.products import KroneckerProduct
from pytensor.tensor.math import Dot
from pytensor.tensor.shape import SpecifyShape
from pytensor.tensor.type_other import NoneTypeT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

# How deep equal terms are compared: duplicates that no merging has met yet are shallow.
_DEPTH = 4


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


def rows_of(fgraph: FunctionGraph, matrix: Any) -> Any:
    """Return how many rows a variable of a graph has: a number, if it is known.

    By what the graph's inputs are, as PyTensor's passes know it. To have what is made with it
    typed, PyTensor rewrites all that leads to it, which from the matrix is a long way.
    """
    known = matrix.type.shape[0]
    if known is not None:
        return known
    shapes = getattr(fgraph, "shape_feature", None)
    return matrix.shape[0] if shapes is None else shapes.get_shape(matrix, 0)


def core_of(node: Apply[Any] | None) -> Any:
    """Return the op that works on single matrices; None for no node."""
    if node is None:
        return None
    return node.op.core_op if isinstance(node.op, Blockwise) else node.op


def scalar_op(variable: Any) -> Any:
    """Return what is computed for each element; None if it is not that kind of variable."""
    node = variable.owner
    return node.op.scalar_op if node is not None and isinstance(node.op, Elemwise) else None


def is_real_matrix(variable: Any) -> bool:
    """Whether it is one matrix of floats, no axis of which is known to be of length 1."""
    return (
        variable.type.ndim == 2
        and variable.type.numpy_dtype.kind == "f"
        and not any(variable.type.broadcastable)
    )


def is_of_parts(matrix: Any) -> bool:
    """Whether a matrix is made of smaller ones, or undoes what is done to it.

    PyTensor's own rewriters look for these where a matrix is inverted.
    """
    return isinstance(core_of(matrix.owner), KroneckerProduct | BlockDiagonal | MatrixInverse)


def are_real_matrices(variable: Any) -> bool:
    """Whether it is one matrix of floats or more, no axis of which is known to be of length 1."""
    return (
        variable.type.ndim >= 2
        and variable.type.numpy_dtype.kind == "f"
        and not any(variable.type.broadcastable[-2:])
    )


def transpose_of(variable: Any) -> Any:
    """Return the variable whose last two axes are swapped to make this one; None if there is none.

    Axes of length 1 that are put in front do not matter.
    """
    node = variable.owner
    if node is None or not isinstance(node.op, DimShuffle):
        return None
    order, ndim = node.op.new_order, node.op.input_ndim
    extra = len(order) - ndim
    if ndim < 2 or extra < 0 or any(axis != "x" for axis in order[:extra]):
        return None
    swapped = (*range(ndim - 2), ndim - 1, ndim - 2)
    return node.inputs[0] if tuple(order[extra:]) == swapped else None


def without_transposes(matrix: Any) -> tuple[Any, bool]:
    """Return a matrix as it was before it was transposed, and whether it is the transpose."""
    turned = False
    while (inner := transpose_of(matrix)) is not None and inner.type.ndim == 2:
        matrix, turned = inner, not turned
    return matrix, turned


def without_expansion(variable: Any) -> Any:
    """Return the variable before axes of length 1 were put in front of it."""
    node = variable.owner
    if node is None or not isinstance(node.op, DimShuffle):
        return variable
    order, ndim = node.op.new_order, node.op.input_ndim
    extra = len(order) - ndim
    if extra > 0 and tuple(order) == ("x",) * extra + tuple(range(ndim)):
        return node.inputs[0]
    return variable


def same(first: Any, second: Any, depth: int = _DEPTH) -> bool:
    """Whether two variables are the same by their terms, as far as these are compared."""
    if first is second:
        return True
    if isinstance(first, Constant) and isinstance(second, Constant):
        return bool(first.equals(second))
    one, other = first.owner, second.owner
    if one is None or other is None or depth == 0 or one.op != other.op:
        return False
    return (
        len(one.inputs) == len(other.inputs)
        and one.outputs.index(first) == other.outputs.index(second)
        and all(same(a, b, depth - 1) for a, b in zip(one.inputs, other.inputs, strict=True))
    )


def long_axes(variable: Any) -> int:
    """Return how many axes are not known to be of length 1."""
    return int(sum(not short for short in variable.type.broadcastable))


def vector_of(variable: Any) -> Any:
    """Return the vector that a column, row or vector is made from by moving axes; None if none.

    All but one axis of it, and of what it is made from, are of length 1.
    """
    if long_axes(variable) != 1:
        return None
    while variable.owner is not None and isinstance(variable.owner.op, DimShuffle):
        [inner] = variable.owner.inputs
        if long_axes(inner) != 1:
            break
        variable = inner
    return variable


def with_axes(variable: Any, order: Sequence[int | str]) -> Any:
    """Return a variable with its axes in another order, as by ``variable.dimshuffle(order)``.

    Axes that were moved before are moved once, and numbers are moved here: to do the same,
    PyTensor's stages would go through the whole graph once more.
    """
    node = variable.owner
    if node is not None and isinstance(node.op, DimShuffle):
        before = node.op.new_order
        return with_axes(
            node.inputs[0], [axis if isinstance(axis, str) else before[axis] for axis in order]
        )
    if tuple(order) == tuple(range(variable.type.ndim)):
        return variable
    if isinstance(variable, Constant) and variable.data.size == 1:
        return pt.constant(variable.data.reshape((1,) * len(order)))
    return variable.dimshuffle(order)


def along_long_axis(variable: Any) -> Any:
    """Return what has one long axis as a vector, without axes that come and go."""
    inner = vector_of(variable)
    return with_axes(inner, (inner.type.broadcastable.index(False),))


def as_scalar(variable: Any) -> Any:
    """Return a variable, all axes of which have length 1, with no axes."""
    return with_axes(variable, ())


def transposed(variable: Any) -> Any:
    """Return a variable with its last two axes swapped."""
    ndim = variable.type.ndim
    return with_axes(variable, (*range(ndim - 2), ndim - 1, ndim - 2))


def multiple_of(variable: Any, is_it: Callable[[Any], Any]) -> Any:
    """Return by which number a vector is multiplied to make another.

    Parameters
    ----------
    variable
        The other: a column, a row or a vector.
    is_it
        Tells the vector, and may give a number by which what it is asked about is a multiple.

    Returns
    -------
    number, variable without axes, or None
        None if it is not recognized as a multiple.
    """
    base = vector_of(variable)
    # Integers overflow in one order of factors, and not in another.
    if base is None or base.type.numpy_dtype.kind != "f":
        return None
    known = is_it(base)
    if known is not None:
        return known
    op = scalar_op(base)
    if isinstance(op, Neg):
        inner = multiple_of(base.owner.inputs[0], is_it)
        return None if inner is None else -inner
    if isinstance(op, Add):
        found = [multiple_of(part, is_it) for part in base.owner.inputs]
        return None if any(one is None for one in found) else sum(found)
    if isinstance(op, Mul | TrueDiv):
        parts = base.owner.inputs
        at = [i for i, part in enumerate(parts) if long_axes(part)]
        if len(at) != 1 or (isinstance(op, TrueDiv) and at != [0]):
            return None
        factor = multiple_of(parts[at[0]], is_it)
        for i, part in enumerate(parts):
            if factor is not None and i != at[0]:
                number = as_scalar(part).astype(base.type.dtype)
                if isinstance(op, TrueDiv):
                    factor = factor / number
                else:
                    # Nothing cleans up after the last rules.
                    factor = number if is_one(factor) else factor * number
        return factor
    return None


def is_one(factor: Any) -> bool:
    """Whether a factor, a variable or a number, is the number 1."""
    return isinstance(factor, float) and factor == 1.0


def is_transpose(first: Any, second: Any, depth: int = _DEPTH) -> bool:
    """Whether two matrices are each other's transposes, by their terms."""
    if (
        first.type.ndim == 2
        and all(first.type.broadcastable)
        and second.type.broadcastable == first.type.broadcastable
    ):
        return same(first, second)
    for one, other in ((first, second), (second, first)):
        inner = transpose_of(one)
        if inner is not None and same(inner, other):
            return True
    one, other = transpose_of(first), transpose_of(second)
    if one is not None and other is not None and one.type.ndim == other.type.ndim and depth:
        return is_transpose(one, other, depth - 1)
    column, row = vector_of(first), vector_of(second)
    if column is not None and row is not None:
        turned = first.type.broadcastable == second.type.broadcastable[::-1]
        return turned and same(column, row)
    op = scalar_op(first)
    if op is None or depth == 0 or scalar_op(second) != op or len(first.owner.outputs) > 1:
        return False
    theirs = list(second.owner.inputs)
    if len(theirs) != len(first.owner.inputs):
        return False
    if not isinstance(op, Add | Mul):
        return all(
            is_transpose(a, b, depth - 1) for a, b in zip(first.owner.inputs, theirs, strict=True)
        )
    for mine in first.owner.inputs:
        at = next((i for i, b in enumerate(theirs) if is_transpose(mine, b, depth - 1)), None)
        if at is None:
            return False
        del theirs[at]
    return True


def outer_product(variable: Any) -> Outer | None:
    """Return the column and the row of which a matrix is the product; None if it is not known.

    Its factors are multiplied in another order. Integers would overflow in another way, too, so
    they have the type of the matrix first, and a matrix of integers is left alone.
    """
    ndim = variable.type.ndim
    node = variable.owner
    if ndim < 2 or node is None or variable.type.numpy_dtype.kind != "f":
        return None
    inner = transpose_of(variable)
    if inner is not None and inner.type.ndim == ndim:
        found = outer_product(inner)
        return None if found is None else Outer(_turned(found.row), _turned(found.column))
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
    """Return an outer product of the shape that it is said to have: its vectors are checked."""
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
    return Outer(_multiplied(columns, dtype), _multiplied(rows, dtype))


def _multiplied(factors: list[Any], dtype: str) -> Any:
    parts = [factor.astype(dtype) for factor in factors]
    return pt.mul(*parts) if parts[1:] else parts[0]


def _turned(variable: Any) -> Any:
    inner = transpose_of(variable)
    is_it = inner is not None and inner.type.ndim == variable.type.ndim
    return inner if is_it else transposed(variable)


def is_zero(variable: Any) -> bool:
    """Whether PyTensor, too, sees that all elements are zero."""
    if isinstance(variable, Constant):
        return not np.any(variable.data)
    node = variable.owner
    if node is None:
        return False
    match scalar_op(variable):
        case Mul():
            return any(is_zero(one) for one in node.inputs)
        case Second():
            return is_zero(node.inputs[1])
        case Neg() | Cast():
            return is_zero(node.inputs[0])
    return isinstance(node.op, Alloc | AllocDiag | DimShuffle) and is_zero(node.inputs[0])


def is_product_to_make(node: Any) -> bool:
    """Whether a node multiplies matrices, neither of which is zero: PyTensor leaves those out."""
    if not isinstance(core_of(node), Dot) or node.outputs[0].type.ndim != 2:
        return False
    return not any(is_zero(one) for one in node.inputs)


def counts_from_zero(vector: Any) -> bool:
    """Whether a vector holds 0, 1, 2 and so on."""
    if isinstance(vector, Constant):
        return bool(np.array_equal(vector.data.ravel(), np.arange(vector.data.size)))
    if vector.owner is None or not isinstance(vector.owner.op, ARange):
        return False
    start, _, step = vector.owner.inputs
    return all(isinstance(one, Constant) for one in (start, step)) and (
        bool(start.data == 0) and bool(step.data == 1)
    )
