"""Rules for matrix products with at least one sparse factor, and for their gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from pytensor.sparse import math

from pytensor_fuse._native.lowering.registry import lower
from pytensor_fuse._native.lowering.sparse.construction import refuses
from pytensor_fuse._native.lowering.sparse.matrices import SparseMatrix, as_matrix
from pytensor_fuse._native.lowering.sparse.products import (
    array_with,
    of_sparse,
    sampled,
    with_array,
)
from pytensor_fuse._native.lowering.sparse.structures import checked_structure, structure_of
from pytensor_fuse._native.lowering.tensors import DTYPES, Tensor

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.types import Context, Node, Tensors


_DOES_NOT_FIT: Final = "operands could not be broadcast together: axes of {0} and {1} elements"


def _is_sparse(variable: Any) -> bool:
    return hasattr(variable.type, "format")


def _refuses(op: Any, node: Node) -> str | None:
    if _is_sparse(node.outputs[0]) and isinstance(op, math.StructuredDot):
        return "a product of sparse matrices with a sparse result"
    return refuses(op, node)


@lower.register(math.Dot, math.StructuredDot, refuses=_refuses)
def _dot(op: Any, node: Node, context: Context, inputs: Tensors) -> Tensors:
    return [_product(context, inputs[0], inputs[1], DTYPES[node.outputs[0].type.dtype])]


def _product(context: Context, left: Tensor, right: Tensor, dtype: str) -> Tensor:
    """Return the product of two matrices, or of a matrix and a vector, as an array."""
    if isinstance(left, SparseMatrix) and isinstance(right, SparseMatrix):
        return of_sparse(context, left, right, dtype)
    if isinstance(left, SparseMatrix):
        return with_array(context, left, right, dtype)
    return array_with(context, left, as_matrix(right), dtype)


def _refuses_gradient(op: Any, node: Node) -> str | None:
    if any(_is_sparse(one) for one in node.inputs):
        return "the gradient of a product of sparse matrices"
    return _refuses(op, node)


@lower.register(math.StructuredDotGradCSC, math.StructuredDotGradCSR, refuses=_refuses_gradient)
def _gradient(op: Any, node: Node, context: Context, inputs: Tensors) -> Tensors:
    builder = context.builder
    indices, indptr, right, gradient = inputs
    is_csr = isinstance(op, math.StructuredDotGradCSR)
    by_major, by_minor = (gradient, right) if is_csr else (right, gradient)
    n_major = builder.op("sub", indptr.lengths[0], builder.index(1))
    n_minor = by_minor.lengths[0]
    known = structure_of(indices, indptr)
    if known is not None:
        n_major, n_minor = known.n_major, known.n_minor
    for own, other in ((n_major, by_major), (n_minor, by_minor)):
        context.require_equal(own, other.lengths[0], ValueError, _DOES_NOT_FIT)
    structure = checked_structure(context, None, indices, indptr, n_major, n_minor)
    dtype = DTYPES[np.result_type(*[one.type.dtype for one in node.inputs[2:]]).name]
    found = sampled(context, structure, by_major, by_minor, dtype)
    return [context.of_dtype(found, DTYPES[node.outputs[0].type.dtype])]
