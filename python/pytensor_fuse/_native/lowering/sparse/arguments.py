"""Sparse matrices that are arguments or constants."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pytensor.sparse.type import SparseTensorType
from pytensor.tensor.basic import constant

from pytensor_fuse._native.lowering.parts import Part, constant_of, received, type_parts
from pytensor_fuse._native.lowering.registry import NoRuleError
from pytensor_fuse._native.lowering.sparse.matrices import FORMATS, SparseMatrix, in_order
from pytensor_fuse._native.lowering.sparse.structures import Structure, checked_structure
from pytensor_fuse._native.lowering.tensors import DTYPES, Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.lowering.types import Array, Constant, Context


# SciPy's indices have 32 bits, except for matrices too large for them.
_MOST = 1 << 31


@type_parts.register(SparseTensorType)
def _parts(kind: SparseTensorType) -> tuple[Part, ...] | None:
    if kind.format not in FORMATS or kind.dtype not in DTYPES:
        return None
    return (Part(kind.dtype, (None,)), *[Part("int32", (None,))] * 2, Part("int64", (2,)))


@received.register(SparseTensorType)
def _received(kind: SparseTensorType, context: Context, parts: Sequence[Tensor]) -> Tensor:
    builder = context.builder
    values, indices, indptr, shape = parts
    lengths = [shape.at((builder.index(axis),)) for axis in range(2)]
    major, minor = in_order(kind.format, *lengths)
    structure = checked_structure(context, values, indices, indptr, major, minor)
    return SparseMatrix(builder, values, structure, kind.format)


@constant_of.register(SparseTensorType)
def _constant(kind: SparseTensorType, context: Context, variable: Constant) -> Tensor:
    if _parts(kind) is None:
        raise NoRuleError(f"a constant of type {kind}")
    builder, matrix = context.builder, variable.data
    n_major, n_minor = in_order(kind.format, *matrix.shape)
    indices, indptr = matrix.indices, matrix.indptr
    if not _is_valid(matrix.data, indices, indptr, n_major, n_minor):
        raise NoRuleError("a sparse constant whose indices are out of bounds")
    places, kept_indices = _kept(context, indices, "int32")
    bounds, kept_indptr = _kept(context, indptr, "int32")
    lengths = [builder.index(one) for one in (n_major, n_minor)]
    known = kept_indices, kept_indptr
    structure = Structure(places, bounds, *lengths, is_checked=False, known=known)
    values, _ = _kept(context, matrix.data, kind.dtype)
    return SparseMatrix(builder, values, structure, kind.format)


def _kept(context: Context, array: Array, dtype: str) -> tuple[Tensor, Array]:
    """Return the tensor of a part of a constant, with its array.

    A matrix and its transpose share parts, of which the program has one copy.
    """
    array = np.asarray(array, dtype=dtype)
    for other, tensor in context.kept:
        if other.dtype == array.dtype and other.shape == array.shape and _is_same(other, array):
            return tensor, other
    tensor = context.constant_tensor(constant(array, dtype=dtype))
    context.kept.append((array, tensor))
    return tensor, array


def _is_same(one: Array, other: Array) -> bool:
    """Whether two arrays of one dtype and shape are bitwise equal."""
    is_one_view = one.ctypes.data == other.ctypes.data and one.strides == other.strides
    return is_one_view or one.tobytes() == other.tobytes()


def _is_valid(values: Array, indices: Array, indptr: Array, n_major: int, n_minor: int) -> bool:
    """Whether arrays are the parts of a valid sparse matrix, with all entries in bounds."""
    if len(indptr) != n_major + 1 or len(indices) != len(values) or len(indices) >= _MOST:
        return False
    if indptr[0] != 0 or indptr[-1] != len(indices) or bool((indptr[1:] < indptr[:-1]).any()):
        return False
    return not len(indices) or bool(indices.min() >= 0 and indices.max() < n_minor)
