"""Basic forms of matrices: transposes, columns and rows, multiples, zeros.

Only certain forms count; an unrecognized variable is some matrix.
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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

# How deep equal terms are compared: duplicates that no merging has met yet are shallow.
_DEPTH = 4


def rows_of(fgraph: FunctionGraph, matrix: Any) -> Any:
    """Return the number of rows of a variable of a graph: a constant number, if it is known.

    PyTensor's shape feature expresses it by the graph's inputs. ``matrix.shape[0]`` would make
    PyTensor rewrite everything between the inputs and the matrix to type the result.
    """
    known = matrix.type.shape[0]
    if known is not None:
        return known
    shapes = getattr(fgraph, "shape_feature", None)
    return matrix.shape[0] if shapes is None else shapes.get_shape(matrix, 0)


def core_of(node: Apply[Any] | None) -> Any:
    """Return the op of a node, for a `Blockwise` that of single matrices; None for no node."""
    if node is None:
        return None
    return node.op.core_op if isinstance(node.op, Blockwise) else node.op


def scalar_op(variable: Any) -> Any:
    """Return the scalar op of an elementwise variable; None for any other variable."""
    node = variable.owner
    return node.op.scalar_op if node is not None and isinstance(node.op, Elemwise) else None


def is_real_matrix(variable: Any) -> bool:
    """Whether a variable is one matrix of floats without an axis of known length 1."""
    return variable.type.ndim == 2 and are_real_matrices(variable)


def is_of_parts(matrix: Any) -> bool:
    """Whether a matrix is a Kronecker product, block-diagonal or an inverse.

    PyTensor's own rewriters look for these where a matrix is inverted.
    """
    return isinstance(core_of(matrix.owner), KroneckerProduct | BlockDiagonal | MatrixInverse)


def are_real_matrices(variable: Any) -> bool:
    """Whether a variable is a matrix of floats, or a stack, without a matrix axis of length 1."""
    return (
        variable.type.ndim >= 2
        and variable.type.numpy_dtype.kind == "f"
        and not any(variable.type.broadcastable[-2:])
    )


def transpose_of(variable: Any, *, expanded: bool = False) -> Any:
    """Return the variable of which a matrix, or a stack, is the transpose; None if it is none.

    Parameters
    ----------
    variable
        The matrix.
    expanded
        Whether axes of length 1 may have been put in front, too.
    """
    node = variable.owner
    if node is None or not isinstance(node.op, DimShuffle):
        return None
    order, ndim = node.op.new_order, node.op.input_ndim
    extra = len(order) - ndim
    if ndim < 2 or extra < 0 or (extra and not expanded):
        return None
    swapped = (*("x",) * extra, *range(ndim - 2), ndim - 1, ndim - 2)
    return node.inputs[0] if tuple(order) == swapped else None


def turned(variable: Any) -> Any:
    """Return the transpose of a matrix, or of each of a stack; that of a transpose is its input."""
    inner = transpose_of(variable)
    return transposed(variable) if inner is None else inner


def without_transposes(matrix: Any) -> tuple[Any, bool]:
    """Return a matrix before any transposition, and whether the given one is its transpose."""
    is_turned = False
    while matrix.type.ndim == 2 and (inner := transpose_of(matrix)) is not None:
        matrix, is_turned = inner, not is_turned
    return matrix, is_turned


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
    """Whether two variables have the same expression, compared to a limited depth."""
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


def are_paired(first: Iterable[Any], second: Iterable[Any], alike: Callable[..., bool]) -> bool:
    """Whether each element of one collection is like an element of the other, none of them left."""
    left = list(second)
    for one in first:
        at = next((i for i, other in enumerate(left) if alike(one, other)), None)
        if at is None:
            return False
        del left[at]
    return not left


def long_axes(variable: Any) -> int:
    """Return the number of axes whose length is not known to be 1."""
    return int(sum(not short for short in variable.type.broadcastable))


def vector_of(variable: Any) -> Any:
    """Return the vector behind a column, row or vector whose axes were moved; None if none.

    All but one axis, of the vector, too, have length 1.
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

    Successive moves are merged, and constants folded, so that PyTensor needs no further pass over
    the graph for this.
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
    """Return a variable with one long axis as a vector, without superfluous moves of axes."""
    inner = vector_of(variable)
    return with_axes(inner, (inner.type.broadcastable.index(False),))


def as_scalar(variable: Any) -> Any:
    """Return a variable whose axes all have length 1 as a scalar."""
    return with_axes(variable, ())


def transposed(variable: Any) -> Any:
    """Return a variable with its last two axes swapped."""
    ndim = variable.type.ndim
    return with_axes(variable, (*range(ndim - 2), ndim - 1, ndim - 2))


def multiple_of(variable: Any, is_it: Callable[[Any], Any]) -> Any:
    """Return the number by which a vector is multiplied to make another.

    Parameters
    ----------
    variable
        The other: a column, a row or a vector.
    is_it
        Returns a number for the vector and for multiples that it recognizes, else None.

    Returns
    -------
    number, variable without axes, or None
        None if the variable is not recognized as a multiple.
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
    parts = scaled_parts(base)
    factor = None if parts is None else multiple_of(parts.whole, is_it)
    if parts is None or factor is None:
        return None
    for part in parts.numbers:
        number = as_scalar(part).astype(base.type.dtype)
        if isinstance(op, TrueDiv):
            factor = factor / number
        else:
            # No pass cleans up after the last rules.
            factor = number if is_one(factor) else factor * number
    return factor


class Scaled(NamedTuple):
    """A product or quotient of one variable with long axes and numbers.

    Attributes
    ----------
    whole
        The variable with long axes.
    numbers
        The factors, or the divisor, all axes of which have length 1.
    """

    whole: Any
    numbers: list[Any]


def scaled_parts(variable: Any) -> Scaled | None:
    """Return the parts of ``c * A``, ``A * c`` or ``A / c``; None for other variables."""
    op = scalar_op(variable)
    if not isinstance(op, Mul | TrueDiv):
        return None
    inputs = variable.owner.inputs
    at = [i for i, one in enumerate(inputs) if long_axes(one)]
    if len(at) != 1 or (isinstance(op, TrueDiv) and at != [0]):
        return None
    return Scaled(inputs[at[0]], [one for i, one in enumerate(inputs) if i != at[0]])


def is_one(factor: Any) -> bool:
    """Whether a factor, a variable or a Python number, is the number 1."""
    return isinstance(factor, float) and factor == 1.0


def is_zero(variable: Any) -> bool:
    """Whether all elements are zero in a form that PyTensor recognizes, too."""
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
    """Whether a node multiplies matrices; PyTensor removes products with a zero matrix itself."""
    if not isinstance(core_of(node), Dot) or node.outputs[0].type.ndim != 2:
        return False
    return not any(is_zero(one) for one in node.inputs)


def counts_from_zero(vector: Any) -> bool:
    """Whether a vector is 0, 1, 2 and so on."""
    if isinstance(vector, Constant):
        return bool(np.array_equal(vector.data.ravel(), np.arange(vector.data.size)))
    if vector.owner is None or not isinstance(vector.owner.op, ARange):
        return False
    start, _, step = vector.owner.inputs
    return all(isinstance(one, Constant) for one in (start, step)) and (
        bool(start.data == 0) and bool(step.data == 1)
    )


def summands_of(variable: Any, depth: int = 8) -> Iterator[Any]:
    """Iterate over the summands of nested sums."""
    if depth and isinstance(scalar_op(variable), Add):
        for part in variable.owner.inputs:
            yield from summands_of(part, depth - 1)
    else:
        yield variable


def sum_of(terms: Sequence[Any]) -> Any:
    """Return the sum of one variable or more."""
    return pt.add(*terms) if len(terms) > 1 else terms[0]


def product_of(factors: Sequence[Any]) -> Any:
    """Return the elementwise product of one variable or more."""
    return pt.mul(*factors) if len(factors) > 1 else factors[0]
